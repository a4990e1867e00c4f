/** The errors of the package, with machine-readable codes. */

/** The reason why a call of this package failed. */
export type ErrorCode =
  // connect: caused by the caller
  | "bad-option"
  | "no-websocket"
  | "no-transport"
  | "wasm-unavailable"
  | "timeout"
  | "no-memory"
  | "worker-unavailable"
  // listen: the host or the port cannot be used
  | "address-unavailable"
  // connect: caused by the relay
  | "relay-unreachable"
  | "relay-closed"
  // The relay refuses the origin of this page, or (`banned`) the relay or the server has banned its address.
  | "origin-refused"
  // The browser does not let this page access the local network, in which the relay is.
  | "local-network-refused"
  // connect: caused by the server
  | "server-unreachable"
  | "no-answer"
  | "handshake-timeout"
  | "already-connected"
  | "server-full"
  | "banned"
  | "recently-connected"
  | "incompatible-protocol"
  | "security-required"
  | "server-without-security"
  | "identity-required"
  | "invalid-identity"
  | "public-key-mismatch"
  | "invalid-password"
  | "invalid-token"
  | "closed-by-server"
  // connect: the page was left while connecting
  | "page-left"
  | "failed"
  // send
  | "not-connected"
  | "empty-message"
  | "reserved-id"
  // the message exceeds the limit of the Game Protocol or the memory of the connection
  | "too-long"
  | "queue-full"
  | "not-sent"
  // remote calls, besides `timeout`, `not-connected` and `too-long`
  | "too-many-calls"
  | "unknown-function"
  | "forbidden"
  | "bad-arguments"
  | "answer-too-long"
  | "schema-mismatch"
  | "function-failed"
  | "bad-answer"
  | "refused"
  | "busy"
  // file transfer, besides `not-connected`
  | "transfer-failed"
  | "file-changed"
  // voice, besides `empty-message`, `too-long` and `bad-option`
  | "voice-unavailable"
  | "microphone-unavailable"
  | "microphone-refused"
  // a bug in this package
  | "internal";

/** Options of a {@link RakwireError}: its cause, and the close code of the relay. */
export interface RakwireErrorOptions extends ErrorOptions {
  relayCode?: number;
}

/** An error of this package. */
export class RakwireError extends Error {
  override readonly name = "RakwireError";
  readonly code: ErrorCode;
  /** The close code of the relay, if the relay caused the error. */
  readonly relayCode: number | undefined;

  constructor(code: ErrorCode, message: string, options?: RakwireErrorOptions) {
    super(message, options);
    this.code = code;
    this.relayCode = options?.relayCode;
  }
}

/** Returns the error for using a closed connection. */
export function notConnected(): RakwireError {
  return new RakwireError("not-connected", "the connection has ended");
}

/** Returns a thrown `RakwireError` itself, or wraps any other value as the cause of an `internal` error. */
export function fromThrown(thrown: unknown): RakwireError {
  return thrown instanceof RakwireError
    ? thrown
    : new RakwireError("internal", "the WebAssembly failed; see the console for details", { cause: thrown });
}
