/** RakNet and the Game Protocol in browsers and Node, with embedded WebAssembly. */

import packed from "../pkg/rakwire.js";
import { CheckedConnection, connectWith } from "./connection.js";
import { createPeer } from "./peer.js";
import { peerClasses } from "./rust.js";
import type { Connection, ConnectOptions } from "./types.js";
import { inflate, Wasm } from "./wasm.js";

export { discover, ping } from "./ping.js";
export * from "./public.js";

const wasm = /* @__PURE__ */ new Wasm(peerClasses, () => inflate(packed));

/**
 * Opens a connection to the game server that the relay at `url` offers as `options.target`. In Node, `url` can also be
 * the `udp://HOST:PORT` of a server.
 *
 * @throws RakwireError with the `code` and `message` of the cause, or the reason of `options.signal`.
 */
export function connect(url: string | URL, options: ConnectOptions = {}): Promise<Connection> {
  return connectWith(wasm, CheckedConnection, createPeer, undefined, url, options);
}
