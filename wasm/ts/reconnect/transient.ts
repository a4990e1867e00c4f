/** Which failures may pass by themselves. */

/** The codes of ends of connections and of errors of `connect`. `relay-closed` is one of them by the code of the relay. */
const TRANSIENT_CODES: readonly unknown[] = [
  "lost",
  // It may come back, where the browser kept it.
  "page-left",
  "relay-unreachable",
  "server-unreachable",
  "no-answer",
  "handshake-timeout",
  "timeout",
  "server-full",
  "recently-connected",
  // The server has not noticed yet that the connection before was lost.
  "already-connected",
];
/** The worker hangs or has failed, and the next connection starts another one. One that cannot be started fails in `connect`. */
const WORKER_LOST = "worker-unavailable";

/**
 * Close codes of a relay, or of a proxy before it, that takes a new client later: it shuts down or restarts, the connection or
 * the socket to the server was lost, it is full, its server cannot be reached, it heard nothing, or the address has its share.
 */
const TRANSIENT_RELAY_CODES: readonly unknown[] = [1001, 1006, 1011, 1012, 1013, 1014, 4408, 4429];

/**
 * Whether another attempt may succeed after an error of `connect`, or after the end of a connection: a relay or a server that is
 * gone or full may come back, and a worker that ends an open connection is replaced. Who was refused, was disconnected by the server
 * or by the operator of the relay, or has closed the connection is not to come again.
 */
export function isTransient(cause: unknown): boolean {
  const { code, relayCode } = Object(cause) as { code?: unknown; relayCode?: unknown };
  if (code === "relay-closed") {
    // Without a code the relay was there and had forgotten the flow, as after a restart.
    return relayCode === undefined || TRANSIENT_RELAY_CODES.includes(relayCode);
  }
  if (code === WORKER_LOST) {
    return !(cause instanceof Error);
  }
  return TRANSIENT_CODES.includes(code);
}
