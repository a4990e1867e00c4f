/** The exports shared by all entries that open connections, besides `connect`. */

export { RakwireError } from "./errors.js";
export type { ErrorCode, RakwireErrorOptions } from "./errors.js";
export { FIRST_ALLOWED_ID, FIRST_FREE_ID } from "./sending.js";
export type {
  CloseCode,
  ClosedEvent,
  CloseInfo,
  Connection,
  ConnectionEventMap,
  ConnectionListener,
  ConnectionStats,
  ConnectOptions,
  DiscoverOptions,
  InterruptionEvent,
  MemoryOptions,
  Message,
  MessageArrivedEvent,
  MtuChangedEvent,
  Outcome,
  PeerWorker,
  PingOptions,
  PingScope,
  Pong,
  Priority,
  Progress,
  ProgressMadeEvent,
  Protocol,
  ReadyOptions,
  RelayDrainingEvent,
  RelayDrops,
  RelayDropsEvent,
  Reliability,
  SendOptions,
  StatsOptions,
  TransportName,
  WasmSource,
  WebSocketConstructor,
  WebSocketLike,
} from "./types.js";
export type { WaitOptions } from "./waits.js";


