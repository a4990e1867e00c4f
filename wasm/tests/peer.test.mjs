// Unit tests of the classes that the WebAssembly exports.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { createPeer } from "../dist/peer.js";
import { instantiate, peerClasses } from "../dist/rust.js";
import { codeOf } from "./support.mjs";

const rust = instantiate(new WebAssembly.Module(readFileSync(new URL("../pkg/rakwire.wasm", import.meta.url))), peerClasses);

const RELIABLE = 2;
/** Encodes a delivery. */
const delivery = (reliability, channel = 0, priority = 2) => reliability | (priority << 3) | (channel << 5);
const create = (protocol, protocolVersion = 6) =>
  createPeer(rust, { protocol, protocolVersion, progressInterval: 0, password: new Uint8Array(0), memory: {} });
/** The classes, and the reliability numbers that each supports. */
const CLASSES = [
  { name: "RakNet", create: () => create("raknet"), reliabilities: [0, 1, 2, 3, 4, 5, 6, 7] },
  { name: "Game Protocol", create: () => create("game"), reliabilities: [0, 2] },
];

/** Returns the next event as an array of the callback's name and its arguments. */
function nextEvent(peer) {
  let event;
  const callbacks = new Proxy({}, { get: (_, name) => (...args) => (event = [name, ...args]) });
  peer.pollEvent(callbacks);
  return event;
}

for (const { name, create, reliabilities } of CLASSES) {
  test(`${name}: connecting to an unresponsive server fails with no-answer`, () => {
    const peer = create();
    assert.equal(peer.pollTransmit(1000), undefined);
    peer.connect(1000);
    let event;
    for (let now = 1000; event === undefined; now = peer.pollTimeout()) {
      peer.handleTimeout(now);
      while (peer.pollTransmit(now) !== undefined);
      event = nextEvent(peer);
    }
    assert.deepEqual(event, ["onFailed", "no-answer", "the server does not answer"]);
    assert.equal(peer.isOver, true);
    assert.equal(nextEvent(peer), undefined);
  });

  test(`${name}: invalid calls of send and connect fail with error codes`, () => {
    const peer = create();
    const message = Uint8Array.of(0xfe);
    for (let reliability = 0; reliability < 8; reliability++) {
      const code = reliabilities.includes(reliability) ? "not-connected" : "bad-option";
      assert.equal(codeOf(() => peer.send(message, delivery(reliability), 0)), code, `reliability ${reliability}`);
      assert.equal(codeOf(() => peer.canSend(1, delivery(reliability))), code, `reliability ${reliability}`);
    }
    peer.connect(0);
    assert.equal(codeOf(() => peer.send(message, delivery(RELIABLE), 0)), "not-connected");
    assert.equal(codeOf(() => peer.connect(0)), "already-connected");
  });

  test(`${name}: a new peer has zero counters and no timeout, and is not closed`, () => {
    const peer = create();
    const { drops, ...counters } = peer.stats();
    assert.deepEqual(drops, {});
    assert.equal(Object.keys(counters).length, name === "RakNet" ? 20 : 17);
    assert.ok(Object.entries(counters).every(([field, value]) => value === 0 || field === "mtu"), JSON.stringify(counters));
    assert.equal(peer.isOver, false);
    assert.equal(peer.pollTimeout(), Infinity);
  });
}

test("RakNet: the first datagram is an open connection request padded to the MTU", () => {
  const peer = create("raknet", 11);
  peer.connect(0);
  const request = peer.pollTransmit(0);
  assert.equal(request.length, 1464);
  assert.equal(request[0], 0x05);
  assert.equal(request[17], 11);
  assert.equal(peer.pollTransmit(0), undefined);
  assert.ok(peer.pollTimeout() > 0);
});

test("RakNet: channels above 31 are refused", () => {
  const peer = create("raknet");
  const message = Uint8Array.of(0xfe);
  assert.equal(codeOf(() => peer.send(message, delivery(3, 31), 0)), "not-connected");
  assert.equal(codeOf(() => peer.send(message, delivery(3, 32), 0)), "bad-option");
  assert.equal(codeOf(() => peer.canSend(1, delivery(3, 0x7ff_ffff))), "bad-option");
});

test("RakNet: invalid datagrams are counted and not answered", () => {
  const peer = create("raknet");
  peer.handle(Uint8Array.of(1), 0);
  peer.handle(new Uint8Array(1400).fill(0x84), 0);
  peer.handle(new Uint8Array(0), 0);
  const stats = peer.stats();
  assert.deepEqual(stats.drops, { tooShort: 2, unknownSource: 1 });
  assert.equal(stats.bytesReceived, 1401);
  assert.equal(stats.messagesReceived, 0);
  assert.equal(peer.pollTransmit(0), undefined);
});

test("Game Protocol: the connection request has four bytes and is not resent, and invalid datagrams are counted", () => {
  const peer = create("game");
  peer.connect(0);
  assert.equal(peer.pollTransmit(0).length, 4);
  assert.equal(peer.pollTransmit(0), undefined);
  peer.handle(Uint8Array.of(1), 0);
  assert.deepEqual(peer.stats().drops, { tooShort: 1 });
  peer.handleTimeout(peer.pollTimeout());
  assert.equal(nextEvent(peer)[1], "no-answer");
});

test("reading an event for which Rust has no memory fails with no-memory", () => {
  const { memory } = rust;
  const peer = createPeer({ memory, raknet: { create: () => 1, pollEvent: () => 1 } }, { protocol: "raknet", memory: {} });
  assert.equal(codeOf(() => nextEvent(peer)), "no-memory");
});
