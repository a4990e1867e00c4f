/** A RakNet server in Node, over UDP. */

import packed from "../pkg/server.js";
import { inflate } from "./inflate.js";
import { listenWith } from "./server/listen.js";
import type { ListenOptions, Server } from "./server/types.js";
import { Wasm } from "./wasm.js";

export * from "./public.js";
export type { Broadcast, BroadcastOptions, ListenOptions, RefusedClient, RefuseReason, Server, ServerConnection, ServerStats } from "./server/types.js";

const wasm = /* @__PURE__ */ new Wasm(() => inflate(packed));

/**
 * Listens for RakNet clients: those of this package at `udp://HOST:PORT` or through a relay, and any others.
 *
 * ```ts
 * await using server = await listen({ host: "127.0.0.1", port: 19_132 });
 * for await (const connection of server) {
 *   console.log("connected", connection.remoteAddress);
 *   echo(connection).catch(console.error);
 * }
 *
 * async function echo(connection: ServerConnection): Promise<void> {
 *   for await (const { bytes } of connection) {
 *     await connection.ready({ length: bytes.length });
 *     connection.send(bytes);
 *   }
 * }
 * ```
 *
 * @throws RakwireError with the code `bad-option`, `address-unavailable`, `no-memory` or `wasm-unavailable`.
 */
export function listen(options: ListenOptions = {}): Promise<Server> {
  return listenWith(wasm, options);
}
