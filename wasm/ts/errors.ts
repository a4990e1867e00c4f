/** Errors with a code for programs. */

/** Why `connect`, `ping`, `send` or `ready` failed. */
export type ErrorCode =
  // connect: the caller
  | "bad-option"
  | "no-websocket"
  | "no-transport"
  | "wasm-unavailable"
  | "timeout"
  | "no-memory"
  | "worker-unavailable"
  // listen: the host or the port cannot be used
  | "address-unavailable"
  // connect: the relay
  | "relay-unreachable"
  | "relay-closed"
  // The relay does not let this page in, by its origin, or `banned` by its address, of the relay or of the server.
  | "origin-refused"
  // The browser does not let this page reach the local network, where the relay is.
  | "local-network-refused"
  // connect: the server
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
  // connect: the page was left meanwhile
  | "page-left"
  | "failed"
  // send
  | "not-connected"
  | "empty-message"
  | "reserved-id"
  // beyond the limit of the Game Protocol, or more than the memory of a connection can hold
  | "too-long"
  | "queue-full"
  | "not-sent"
  // remote calls, beside `timeout`, `not-connected` and `too-long`
  | "too-many-calls"
  | "unknown-function"
  | "forbidden"
  | "bad-arguments"
  | "answer-too-long"
  | "other-schema"
  | "function-failed"
  | "bad-answer"
  | "refused"
  | "busy"
  // file transfer, beside `not-connected`
  | "transfer-failed"
  | "file-changed"
  // voice, beside `empty-message`, `too-long` and `bad-option`
  | "voice-unavailable"
  | "microphone-unavailable"
  | "microphone-refused"
  // a bug in this package
  | "internal";

/** What an error knows besides: its cause, and the close code of the WebSocket. */
export interface RakwireErrorOptions extends ErrorOptions {
  relayCode?: number;
}

/** An error of this package. */
export class RakwireError extends Error {
  override readonly name = "RakwireError";
  readonly code: ErrorCode;
  /** The close code of the transport, if the relay is the cause. */
  readonly relayCode: number | undefined;

  constructor(code: ErrorCode, message: string, options?: RakwireErrorOptions) {
    super(message, options);
    this.code = code;
    this.relayCode = options?.relayCode;
  }
}

/** What is thrown at who uses a connection that has ended. */
export function notConnected(): RakwireError {
  return new RakwireError("not-connected", "the connection has ended");
}

/** An error of this package: what was thrown, or one that names it as its cause. */
export function fromThrown(thrown: unknown): RakwireError {
  return thrown instanceof RakwireError
    ? thrown
    : new RakwireError("internal", "the WebAssembly failed; see the console for details", { cause: thrown });
}
