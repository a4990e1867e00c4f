/** RakNet and the Game Protocol in browsers, through a relay. */

export { connect } from "./connect.js";
export { RakwireError } from "./errors.js";
export type { ErrorCode } from "./errors.js";
export type { ClosedEvent, MessageArrivedEvent } from "./events.js";
export type {
  CloseCode,
  CloseInfo,
  Connection,
  ConnectionStats,
  ConnectOptions,
  Message,
  Priority,
  Protocol,
  Reliability,
  SendOptions,
  WasmSource,
  WebSocketConstructor,
  WebSocketLike,
} from "./types.js";
