// The exported class `Peer` on its own.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { initSync, Peer } from "../pkg/rakwire.js";

initSync({ module: readFileSync(new URL("../pkg/rakwire_bg.wasm", import.meta.url)) });

const ENTROPY = new Uint8Array(32).fill(7);

function codeOf(work) {
  try {
    work();
  } catch (error) {
    assert.ok(error instanceof Error);
    assert.notEqual(error.message, "");
    return error.code;
  }
  return undefined;
}

test("the first datagram is an open connection request padded to the MTU", () => {
  const peer = new Peer(ENTROPY, 11, 0);
  assert.equal(peer.pollTransmit(0), undefined);
  peer.connect(0);
  const request = peer.pollTransmit(0);
  assert.equal(request.length, 1464);
  assert.equal(request[0], 0x05);
  assert.equal(request[17], 11);
  assert.equal(peer.pollTransmit(0), undefined);
  assert.ok(peer.pollTimeout() > 0);
});

test("a server that does not answer causes an event", () => {
  const peer = new Peer(ENTROPY, 6, 0);
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

test("errors have codes", () => {
  assert.equal(codeOf(() => new Peer(new Uint8Array(31), 6, 0)), "bad-entropy");
  const peer = new Peer(ENTROPY, 6, 0);
  const message = Uint8Array.of(0xfe);
  assert.equal(codeOf(() => peer.send(message, 3, 0, 2, 0)), "not-connected");
  assert.equal(codeOf(() => peer.send(message, 8, 0, 2, 0)), "bad-reliability");
  assert.equal(codeOf(() => peer.send(message, 3, 32, 2, 0)), "bad-channel");
  assert.equal(codeOf(() => peer.send(message, 3, 0, 4, 0)), "bad-priority");
  peer.connect(0);
  assert.equal(codeOf(() => peer.connect(0)), "already-connected");
});

test("garbage is counted and not answered", () => {
  const peer = new Peer(ENTROPY, 6, 0);
  peer.handle(Uint8Array.of(1), 0);
  peer.handle(new Uint8Array(1400).fill(0x84), 0);
  peer.handle(new Uint8Array(0), 0);
  const stats = peer.stats();
  assert.deepEqual(stats.drops, { tooShort: 2, unknownSource: 1 });
  assert.equal(stats.bytesReceived, 1401);
  assert.equal(stats.messagesReceived, 0);
  assert.equal(peer.pollTransmit(0), undefined);
});
