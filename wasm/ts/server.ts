/** Entry for a RakNet server in Node, over UDP. */

import { isIP } from "node:net";

import packed from "../pkg/server.js";
import { RakwireError } from "./errors.js";
import { checkNames, readBytes, readInteger, readMemory, readOptional } from "./options.js";
import { serverClasses } from "./rust.js";
import { ServerPeers } from "./server/peers.js";
import { UdpServer } from "./server/server.js";
import { ServerSocket } from "./server/socket.js";
import type { ListenOptions, Server } from "./server/types.js";
import { MAX_PASSWORD_BYTES, MAX_TIMEOUT_MS } from "./types.js";
import { inflate, Wasm } from "./wasm.js";

export * from "./public.js";
export type { Broadcast, BroadcastOptions, ListenOptions, RefusedClient, RefuseReason, Server, ServerConnection, ServerStats } from "./server/types.js";

const DEFAULT_CONNECTIONS = 32;
const MAX_CONNECTIONS = 10_000;
const MAX_PORT = 0xffff;
const OPTIONS = [
  "host",
  "port",
  "maxConnections",
  "maxPerAddress",
  "maxPerNetwork",
  "password",
  "advertisement",
  "memory",
  "silenceTimeoutMs",
  "onRefused",
  "wasm",
];
const MAX_ADVERTISEMENT_BYTES = 399;

const wasm = /* @__PURE__ */ new Wasm(serverClasses, () => inflate(packed));

/**
 * Listens for RakNet clients: this package at `udp://HOST:PORT` or through a relay, and any other client.
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

/** Listens with the WebAssembly of an entry. */
async function listenWith(wasm: Wasm, options: ListenOptions): Promise<Server> {
  const { host = "0.0.0.0", port = 0, maxConnections = DEFAULT_CONNECTIONS } = options;
  checkNames(options, OPTIONS);
  // Interface names can contain any characters.
  if (isIP(String(host).replace(/(:.*)%.+$/, "$1")) === 0) {
    throw new RakwireError("bad-option", `host must be an IPv4 or IPv6 address, not ${String(host)}`);
  }
  readInteger("port", port, 0, MAX_PORT);
  const { blocks = 0, blockSize = 0 } = readMemory(options.memory);
  if (options.onRefused !== undefined && typeof options.onRefused !== "function") {
    throw new RakwireError("bad-option", "onRefused must be a function");
  }
  const settings = {
    maxConnections: readInteger("maxConnections", maxConnections, 1, MAX_CONNECTIONS),
    blocks,
    blockSize,
    silenceTimeoutMs: readOptional("silenceTimeoutMs", options.silenceTimeoutMs, MAX_TIMEOUT_MS),
    maxPerAddress: readOptional("maxPerAddress", options.maxPerAddress, MAX_CONNECTIONS),
    maxPerNetwork: readOptional("maxPerNetwork", options.maxPerNetwork, MAX_CONNECTIONS),
    password: readBytes("password", options.password, MAX_PASSWORD_BYTES),
    advertisement: readBytes("advertisement", options.advertisement, MAX_ADVERTISEMENT_BYTES),
  };
  const peers = new ServerPeers(await wasm.load(options.wasm), settings);
  try {
    return new UdpServer(peers, await ServerSocket.bind(host, port), settings.maxConnections, options.onRefused);
  } catch (error) {
    peers.all.free();
    throw error;
  }
}
