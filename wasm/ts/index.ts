/** RakNet and the Game Protocol in browsers, through a relay. */

export { connect } from "./connect.js";
export { RakwireError } from "./errors.js";
export type { ErrorCode } from "./errors.js";
export type { ClosedEvent, MessageArrivedEvent, ProgressMadeEvent } from "./events.js";
export { discover, ping } from "./ping.js";
export { FIRST_ALLOWED_ID, FIRST_FREE_ID } from "./ids.js";
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
  PingOptions,
  PingScope,
  Pong,
  Priority,
  Progress,
  Protocol,
  ReadyOptions,
  Reliability,
  SendOptions,
  WasmSource,
  WebSocketConstructor,
  WebSocketLike,
} from "./types.js";
export type { WaitOptions } from "./waits.js";
