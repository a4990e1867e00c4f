// The behaviour of the package if Rust cannot allocate memory for its output.

import assert from "node:assert/strict";
import { test } from "node:test";

import { RustPeerHandle } from "../dist/peer.js";
import { HEADER } from "../dist/rust.js";
import { MADE, ServerPeers } from "../dist/server/peers.js";
import { fails } from "./support.mjs";

const AT = 1_024;
const TEXTS = "failed it failed\n\nlost it fell silent\n\nnot-sent it was not accepted\n\ntooShort\nexpired";

/** Returns a memory without a valid record at address 0, and a function that writes a record. */
function memoryOf() {
  const memory = new WebAssembly.Memory({ initial: 1 });
  const view = new DataView(memory.buffer);
  view.setUint32(12, 24, true);
  new Uint8Array(memory.buffer).fill(0x41, HEADER, HEADER + 24);
  const write = (bytes, ...numbers) => {
    numbers.forEach((number, index) => view.setUint32(AT + 4 * index, number, true));
    view.setUint32(AT + 12, bytes.length, true);
    new Uint8Array(memory.buffer).set(bytes, AT + HEADER);
    return AT;
  };
  return { memory, write };
}

const floats = (...numbers) => new Uint8Array(Float64Array.from(numbers).buffer);

test("until Rust has memory for its output, errors are no-memory and statistics are empty", () => {
  const { memory, write } = memoryOf();
  let hasMemory = false;
  const output = (bytes) => (hasMemory ? write(bytes) : 0);
  const rust = {
    create: () => 1,
    reserve: () => AT,
    send: () => -1,
    pollEvent: () => write(new Uint8Array(0), 3, 0),
    texts: () => output(new TextEncoder().encode(TEXTS)),
    stats: () => output(floats(...Array.from({ length: 21 }, () => 7), 0, 5)),
  };
  const peer = new RustPeerHandle({ memory, raknet: rust, exports: {} }, MADE);
  const { drops, mtu } = peer.stats();
  assert.deepEqual([drops, mtu], [{}, 0]);
  assert.throws(() => peer.send(Uint8Array.of(0x80), 0, 0), fails("no-memory", /memory/));
  const ends = [];
  peer.pollEvent({ onEnded: (code) => ends.push(code) });
  hasMemory = true;
  peer.pollEvent({ onEnded: (code) => ends.push(code) });
  assert.deepEqual(ends, ["no-memory", "lost"]);
  assert.throws(() => peer.send(Uint8Array.of(0x80), 0, 0), fails("not-sent", /accepted/));
  assert.deepEqual([peer.stats().drops, peer.stats().mtu], [{ expired: 5 }, 7]);
});

test("a server without memory for its statistics or texts reports them as empty", () => {
  const { memory, write } = memoryOf();
  const missing = new Set(["stats", "texts"]);
  const output = (what, bytes) => (missing.has(what) ? 0 : write(bytes));
  const server = {
    create: () => 1,
    reserve: () => AT,
    setPassword: () => 1,
    setAdvertisement: () => 1,
    serverStats: () => output("stats", floats(10, 20, 0, 3)),
    texts: () => output("texts", new TextEncoder().encode(TEXTS)),
    free: () => undefined,
  };
  const settings = { maxConnections: 1, blocks: 0, blockSize: 0, silenceTimeoutMs: 0, password: new Uint8Array(0), advertisement: new Uint8Array(0) };
  const peers = new ServerPeers({ memory, server }, settings);
  assert.deepEqual(peers.stats(), { bytesSent: 0, bytesReceived: 0, drops: {} });
  missing.delete("stats");
  assert.deepEqual(peers.stats(), { bytesSent: 10, bytesReceived: 20, drops: {} });
  missing.add("stats").delete("texts");
  assert.deepEqual(peers.stats(), { bytesSent: 0, bytesReceived: 0, drops: {} });
  missing.clear();
  assert.deepEqual(peers.stats(), { bytesSent: 10, bytesReceived: 20, drops: { expired: 3 } });
});
