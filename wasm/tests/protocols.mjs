// The differences between the two protocols for tests that run with both.

import { WebSocket } from "ws";

import { connect } from "rakwire";

import { LIMIT_MS, startEcho, startRelay } from "./support.mjs";

export const RAKNET = {
  name: "RakNet",
  /** The options of `connect` and of `rakwire echo`. */
  options: { protocol: "raknet" },
  echo: [],
  deliveries: [
    [undefined, 0],
    ["reliable-ordered", 5],
    ["reliable", 0],
    ["unreliable", 0],
    ["unreliable-sequenced", 31],
  ],
  defaultReliability: "reliable-ordered",
  /** A number of messages that exceeds the receive queue, but fits into the memory of a connection. */
  burst: 3000,
  /** The length in bytes of a message that fits into one datagram. */
  short: 1000,
  /** Memory for a few dozen messages of the length `short`. */
  smallMemory: { blocks: 256, blockSize: 512 },
  tooLong: { bytes: 10_000_000, words: /exceeds/ },
};

export const GAME_PROTOCOL = {
  name: "Game Protocol",
  options: { protocol: "game" },
  echo: ["--protocol", "game"],
  deliveries: [
    [undefined, 0],
    ["reliable", 0],
    ["unreliable", 0],
  ],
  defaultReliability: "reliable",
  burst: 1500,
  short: 500,
  smallMemory: { blocks: 64, blockSize: 512 },
  tooLong: { bytes: 129_025, words: /at most 129,024/ },
};

export const PROTOCOLS = [RAKNET, GAME_PROTOCOL];

/** Connects to a relay in Node. */
export function connectTo(relay, protocol, options) {
  const usual = { webSocket: WebSocket, target: "game", timeoutMs: LIMIT_MS };
  return connect(`ws://${relay.address}/ws`, { ...usual, ...protocol.options, ...options });
}

/** Starts an echo server behind a relay. Returns a function that connects to it. */
export async function echoFixture(t, protocol) {
  const echo = await startEcho(t, ...protocol.echo);
  const relay = await startRelay(t, { game: echo.address });
  return { echo, relay, open: (options) => connectTo(relay, protocol, options) };
}
