/** Entry for both protocols without embedded WebAssembly. Load any of the `.wasm` files of the package. */

import { CheckedConnection, connectWith } from "./connection.js";
import { createPeer } from "./peer.js";
import { peerClasses } from "./rust.js";
import type { Connection, ConnectOptions, WasmSource } from "./types.js";
import { Wasm } from "./wasm.js";

export { discover, ping } from "./ping.js";
export * from "./public.js";

const wasm = /* @__PURE__ */ new Wasm(peerClasses);

/**
 * Loads the WebAssembly from a URL, bytes, a response or a compiled module. Later calls ignore their `source`, unless
 * the first load failed.
 *
 * @throws RakwireError with the code `wasm-unavailable`.
 */
export async function init(source: WasmSource | Promise<WasmSource>): Promise<void> {
  await wasm.load(source);
}

/**
 * Opens a connection to the game server that the relay at `url` offers as `options.target`. In Node, `url` can also be
 * the `udp://HOST:PORT` of a server. Requires WebAssembly from {@link init} or `options.wasm`.
 *
 * @throws RakwireError with the `code` and `message` of the cause, or the reason of `options.signal`.
 */
export function connect(url: string | URL, options: ConnectOptions = {}): Promise<Connection> {
  return connectWith(wasm, CheckedConnection, createPeer, undefined, url, options);
}
