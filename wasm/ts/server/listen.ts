/** Begins to listen. */

import { isIP } from "node:net";

import { RakwireError } from "../errors.js";
import { checkNames, MAX_PASSWORD_BYTES, MAX_TIMEOUT_MS, readBytes, readInteger, readMemory, readOptional } from "../options.js";
import type { Wasm } from "../wasm.js";
import { ServerPeers } from "./peers.js";
import { UdpServer } from "./server.js";
import { ServerSocket } from "./socket.js";
import type { ListenOptions, Server } from "./types.js";

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

/** Listens with the WebAssembly of an entry. */
export async function listenWith(wasm: Wasm, options: ListenOptions): Promise<Server> {
  const { host = "0.0.0.0", port = 0, maxConnections = DEFAULT_CONNECTIONS } = options;
  checkNames(options, OPTIONS);
  // An interface may have any name.
  if (isIP(String(host).replace(/(:.*)%.+$/, "$1")) === 0) {
    throw new RakwireError("bad-option", `host must be an address of IPv4 or IPv6, not ${String(host)}`);
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
