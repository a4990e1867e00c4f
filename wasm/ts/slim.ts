/** Both protocols, with the WebAssembly from elsewhere: any of the files that the package contains. */

import { CheckedConnection, connectWith } from "./connection.js";
import { createPeer } from "./peer.js";
import { peerClasses } from "./rust.js";
import type { Connection, ConnectOptions, WasmSource } from "./types.js";
import { Wasm } from "./wasm.js";

export { discover, ping } from "./ping.js";
export * from "./public.js";

const wasm = /* @__PURE__ */ new Wasm(peerClasses);

/**
 * Loads the WebAssembly: its URL, its bytes, a response or a compiled module. The first call counts.
 *
 * @throws RakwireError with the code `wasm-unavailable`.
 */
export async function init(source: WasmSource | Promise<WasmSource>): Promise<void> {
  await wasm.load(source);
}

/**
 * Opens a connection to the game server that the relay at `url` offers as `options.target`; in Node also to the server at
 * `udp://HOST:PORT`. The WebAssembly comes from {@link init}, or from `options.wasm`.
 *
 * @throws RakwireError whose `code` and `message` name the cause, or the reason of `options.signal`.
 */
export function connect(url: string | URL, options: ConnectOptions = {}): Promise<Connection> {
  return connectWith(wasm, CheckedConnection, createPeer, undefined, url, options);
}
