/** Entry for the Game Protocol alone, with a smaller embedded WebAssembly. */

import packed from "../pkg/game-protocol.js";
import { connectWith, PeerConnection } from "./connection.js";
import { createGamePeer } from "./peer.js";
import { gameClasses } from "./rust.js";
import type { Connection, ConnectOptions } from "./types.js";
import { inflate, Wasm } from "./wasm.js";

export * from "./public.js";

const wasm = /* @__PURE__ */ new Wasm(gameClasses, () => inflate(packed));

/**
 * Opens a connection to the game server that the relay at `url` offers as `options.target`. In Node, `url` can also be
 * the `udp://HOST:PORT` of a server.
 *
 * @throws RakwireError with the `code` and `message` of the cause, or the reason of `options.signal`.
 */
export function connect(url: string | URL, options: ConnectOptions = {}): Promise<Connection> {
  return connectWith(wasm, PeerConnection, createGamePeer, "game", url, options);
}
