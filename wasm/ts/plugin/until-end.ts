/** Plugins of a connection that have something to do when it ends. */

import type { Plugin } from "../plugin.js";
import { attach } from "../plugin.js";
import type { Connection } from "../types.js";

/**
 * Attaches a plugin, and calls back when the connection ends. Returns what detaches the plugin; the connection then keeps nothing
 * of it alive.
 *
 * @throws RakwireError as {@link attach}.
 */
export function attachUntilEnd(connection: Connection, plugin: Plugin, onEnd: () => void): () => void {
  const detach = attach(connection, plugin);
  const detached = new AbortController();
  const { signal } = detached;
  connection.whenClosed({ signal }).then(
    () => signal.aborted || onEnd(),
    () => undefined,
  );
  return () => {
    detach();
    detached.abort();
  };
}
