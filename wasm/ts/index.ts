/** RakNet and the Game Protocol in browsers, through a relay. */

export { connect } from "./connect.js";
export { RakwireError } from "./errors.js";
export type { ErrorCode } from "./errors.js";
export type { ClosedEvent, MessageArrivedEvent, ProgressMadeEvent } from "./events.js";
export { FIRST_ALLOWED_ID, FIRST_FREE_ID } from "./ids.js";
export type {
  CloseCode,
  CloseInfo,
  Connection,
  ConnectionStats,
  ConnectOptions,
  Message,
  Outcome,
  Priority,
  Progress,
  Protocol,
  Reliability,
  SendOptions,
  WasmSource,
  WebSocketConstructor,
  WebSocketLike,
} from "./types.js";
