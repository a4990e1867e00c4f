/** Connections one after the other: when one is lost, the next one is opened. */

import { readReconnect } from "./reconnect/options.js";
import type { ReconnectOptions, ReconnectSettings } from "./reconnect/options.js";
import { Retries } from "./reconnect/retries.js";
import type { CloseInfo, Connection } from "./types.js";
import { beforeAbort } from "./waits.js";

export { RakwireError } from "./errors.js";
export type { ErrorCode, RakwireErrorOptions } from "./errors.js";
export type { ReconnectOptions, Retry } from "./reconnect/options.js";
export { isTransient } from "./reconnect/transient.js";

/** Opens a connection. The signal is that of the options, for `connect` to stop with it. */
export type OpenConnection<C extends Connection> = (signal: AbortSignal | undefined) => Promise<C>;

/**
 * Opens a connection with `open`, and another one each time that it is lost, after growing pauses.
 *
 * ```ts
 * import { connect } from "rakwire";
 * import { connections } from "rakwire/reconnect";
 *
 * for await (const connection of connections((signal) => connect(url, { target: "game", signal }))) {
 *   join(connection);
 *   for await (const { bytes } of connection) {
 *     handle(bytes);
 *   }
 * }
 * ```
 *
 * Each is a new connection, and a new player to the server: what the one before had under way is not sent again. Its receipts
 * resolve to `unknown`, and a reliable message without one may or may not have arrived.
 *
 * The next one is opened when this one has ended and the loop has asked for it. The loop ends when a connection was closed here, or
 * has ended for a reason that no other attempt would change, which {@link Connection.closed} tells. Whoever leaves the loop closes
 * the connection.
 *
 * @throws RakwireError with the code `bad-option`; and the iteration with the error of the last attempt, or the reason of the
 * signal.
 */
export function connections<C extends Connection>(
  open: OpenConnection<C>,
  options: ReconnectOptions = {},
): AsyncGenerator<C, void, undefined> {
  return openEach(open, readReconnect(options));
}

async function* openEach<C extends Connection>(
  open: OpenConnection<C>,
  settings: ReconnectSettings,
): AsyncGenerator<C, void, undefined> {
  const { signal, shouldRetry } = settings;
  const retries = new Retries(settings);
  for (;;) {
    const connection = await openNext(open, signal, retries);
    const openedAt = performance.now();
    let end: CloseInfo | undefined;
    try {
      yield connection;
      end = await connection.whenClosed({ signal });
    } finally {
      if (end === undefined) {
        await leave(connection, signal);
      }
    }
    if (end.code === "local" || !shouldRetry(end)) {
      return;
    }
    await retries.afterLoss(end, performance.now() - openedAt);
  }
}

/** The next connection that opens. */
async function openNext<C extends Connection>(open: OpenConnection<C>, signal: AbortSignal | undefined, retries: Retries): Promise<C> {
  for (;;) {
    signal?.throwIfAborted();
    try {
      return await openOnce(open, signal);
    } catch (error) {
      await retries.afterFailure(error);
    }
  }
}

async function openOnce<C extends Connection>(open: OpenConnection<C>, signal: AbortSignal | undefined): Promise<C> {
  const opening = open(signal);
  try {
    return await beforeAbort(signal, opening);
  } catch (error) {
    // One that opens although the signal was aborted has no owner.
    opening.then((connection) => connection.close(), () => undefined);
    throw error;
  }
}

/** Closes a connection. Whoever has aborted does not wait for it. */
async function leave(connection: Connection, signal: AbortSignal | undefined): Promise<void> {
  const closing = connection.close();
  if (signal?.aborted !== true) {
    await closing;
  }
}
