/** What every entry with a connection exports beside `connect`. */

export { RakwireError } from "./errors.js";
export type { ErrorCode, RakwireErrorOptions } from "./errors.js";
export type { ClosedEvent, InterruptionEvent, MessageArrivedEvent, MtuChangedEvent, ProgressMadeEvent, RelayDrainingEvent, RelayDropsEvent } from "./events.js";
export { FIRST_ALLOWED_ID, FIRST_FREE_ID } from "./sending.js";
export type {
  CloseCode,
  CloseInfo,
  Connection,
  ConnectionEventMap,
  ConnectionListener,
  ConnectionStats,
  ConnectOptions,
  DiscoverOptions,
  MemoryOptions,
  Message,
  Outcome,
  PeerWorker,
  PingOptions,
  PingScope,
  Pong,
  Priority,
  Progress,
  Protocol,
  ReadyOptions,
  RelayDrops,
  Reliability,
  SendOptions,
  StatsOptions,
  TransportName,
  WasmSource,
  WebSocketConstructor,
  WebSocketLike,
} from "./types.js";
export type { WaitOptions } from "./waits.js";


