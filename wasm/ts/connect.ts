/** Opens connections. */

import { PeerConnection } from "./connection.js";
import { withDeadline } from "./deadline.js";
import { RakwireError } from "./errors.js";
import { readSettings } from "./options.js";
import type { SessionSettings } from "./session.js";
import type { Connection, ConnectOptions } from "./types.js";
import { beforeAbort } from "./waits.js";
import type { PeerClasses } from "./wasm.js";
import { loadPeers } from "./wasm.js";

const DEFAULT_TIMEOUT_MS = 15_000;

/**
 * Opens a connection to the game server that the relay at `url` offers as `options.target`.
 *
 * @throws RakwireError whose `code` and `message` name the cause, or the reason of `options.signal`.
 */
export async function connect(url: string | URL, options: ConnectOptions): Promise<Connection> {
  const settings = readSettings(url, options);
  const { signal, timeoutMs = DEFAULT_TIMEOUT_MS } = options;
  return withDeadline(signal, timeoutMs, ["timeout", `no connection within ${timeoutMs} ms`], async (deadline) => {
    const classes = await beforeAbort(deadline, loadPeers(options.wasm));
    for (;;) {
      const connection = await attempt(classes, settings, deadline);
      if (connection !== undefined) {
        return connection;
      }
    }
  });
}

/**
 * Makes one attempt. It returns `undefined` if another attempt may succeed: a server of the Game Protocol ignores further
 * requests from the same port, and another WebSocket has another port at the relay.
 */
async function attempt(
  classes: PeerClasses,
  settings: SessionSettings,
  deadline: AbortSignal,
): Promise<PeerConnection | undefined> {
  const connection = new PeerConnection(classes, settings);
  try {
    await beforeAbort(deadline, connection.opened);
    return connection;
  } catch (error) {
    connection.cancel();
    if (settings.protocol === "game" && error instanceof RakwireError && error.code === "no-answer") {
      return undefined;
    }
    throw error;
  }
}
