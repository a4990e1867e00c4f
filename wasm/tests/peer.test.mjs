// The exported classes on their own.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { GameProtocolPeer, initSync, RakNetPeer } from "../pkg/rakwire.js";
import { codeOf } from "./support.mjs";

initSync({ module: readFileSync(new URL("../pkg/rakwire_bg.wasm", import.meta.url)) });

const ENTROPY = new Uint8Array(32).fill(7);
const NO_PASSWORD = new Uint8Array(0);
const RELIABLE = 2;
/** The classes, and the numbers of reliabilities that they know. */
const CLASSES = [
  { name: "RakNet", create: (entropy) => new RakNetPeer(entropy, 6, 0, NO_PASSWORD), reliabilities: [0, 1, 2, 3, 4, 5, 6, 7] },
  { name: "Game Protocol", create: (entropy) => new GameProtocolPeer(entropy), reliabilities: [0, 2] },
];

for (const { name, create, reliabilities } of CLASSES) {
  test(`${name}: a server that does not answer causes an event`, () => {
    const peer = create(ENTROPY);
    assert.equal(peer.pollTransmit(1000), undefined);
    peer.connect(1000);
    let event;
    for (let now = 1000; event === undefined; now = peer.pollTimeout()) {
      peer.handleTimeout(now);
      while (peer.pollTransmit(now) !== undefined);
      event = peer.pollEvent();
    }
    assert.deepEqual(event, { kind: "failed", code: "no-answer", words: "the server does not answer" });
    assert.equal(peer.isOver, true);
    assert.equal(peer.pollEvent(), undefined);
  });

  test(`${name}: errors have codes`, () => {
    assert.equal(codeOf(() => create(new Uint8Array(31))), "bad-entropy");
    const peer = create(ENTROPY);
    const message = Uint8Array.of(0xfe);
    for (let reliability = 0; reliability < 10; reliability++) {
      const code = reliabilities.includes(reliability) ? "not-connected" : "bad-reliability";
      assert.equal(codeOf(() => peer.send(message, reliability, 0, 2, 0)), code, `reliability ${reliability}`);
      assert.equal(codeOf(() => peer.canSend(1, reliability, 0, 2)), code, `reliability ${reliability}`);
    }
    peer.connect(0);
    assert.equal(codeOf(() => peer.send(message, RELIABLE, 0, 2, 0)), "not-connected");
    assert.equal(codeOf(() => peer.connect(0)), "already-connected");
  });

  test(`${name}: the counters start at zero, and an unopened peer is not over`, () => {
    const peer = create(ENTROPY);
    const { drops, ...counters } = peer.stats();
    assert.deepEqual(drops, {});
    assert.equal(Object.keys(counters).length, name === "RakNet" ? 17 : 14);
    assert.ok(Object.entries(counters).every(([field, value]) => value === 0 || field === "mtu"), JSON.stringify(counters));
    assert.equal(peer.isOver, false);
    assert.equal(peer.pollTimeout(), undefined);
  });
}

test("RakNet: the first datagram is an open connection request padded to the MTU", () => {
  const peer = new RakNetPeer(ENTROPY, 11, 0, NO_PASSWORD);
  peer.connect(0);
  const request = peer.pollTransmit(0);
  assert.equal(request.length, 1464);
  assert.equal(request[0], 0x05);
  assert.equal(request[17], 11);
  assert.equal(peer.pollTransmit(0), undefined);
  assert.ok(peer.pollTimeout() > 0);
});

test("RakNet: channels and priorities are checked", () => {
  const peer = new RakNetPeer(ENTROPY, 6, 0, NO_PASSWORD);
  const message = Uint8Array.of(0xfe);
  assert.equal(codeOf(() => peer.send(message, 3, 32, 2, 0)), "bad-channel");
  assert.equal(codeOf(() => peer.send(message, 3, 0, 4, 0)), "bad-priority");
});

test("RakNet: garbage is counted and not answered", () => {
  const peer = new RakNetPeer(ENTROPY, 6, 0, NO_PASSWORD);
  peer.handle(Uint8Array.of(1), 0);
  peer.handle(new Uint8Array(1400).fill(0x84), 0);
  peer.handle(new Uint8Array(0), 0);
  const stats = peer.stats();
  assert.deepEqual(stats.drops, { tooShort: 2, unknownSource: 1 });
  assert.equal(stats.bytesReceived, 1401);
  assert.equal(stats.messagesReceived, 0);
  assert.equal(peer.pollTransmit(0), undefined);
});

test("Game Protocol: a connection begins with four bytes, which are not repeated, and garbage is counted", () => {
  const peer = new GameProtocolPeer(ENTROPY);
  peer.connect(0);
  assert.equal(peer.pollTransmit(0).length, 4);
  assert.equal(peer.pollTransmit(0), undefined);
  peer.handle(Uint8Array.of(1), 0);
  assert.deepEqual(peer.stats().drops, { tooShort: 1 });
  peer.handleTimeout(peer.pollTimeout());
  assert.equal(peer.pollEvent().code, "no-answer");
});
