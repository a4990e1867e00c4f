// Ready events: between connections in memory, and with malicious peers.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { ReadyEvents } from "rakwire/ready";

import { decodeReady, encodeReady } from "../dist/ready/event.js";
import { openFake, openPair } from "./fake-peer.mjs";
import { fails, until } from "./support.mjs";

const VECTORS = JSON.parse(readFileSync(new URL("ready.json", import.meta.url), "utf8"));
const hex = (text) => Uint8Array.from(Buffer.from(text, "hex"));
const settle = () => new Promise((resolve) => setTimeout(resolve));

/** Returns `count` peers, each connected with all others. */
async function mesh(count) {
  const peers = Array.from({ length: count }, () => ({ events: new ReadyEvents(), to: new Map() }));
  for (const [index, peer] of peers.entries()) {
    for (const other of peers.slice(index + 1)) {
      const [here, there] = await openPair("raknet");
      peer.to.set(other, here);
      other.to.set(peer, there);
    }
  }
  for (const { events, to } of peers) {
    to.forEach(({ connection }) => events.join(connection));
  }
  return peers;
}

/** Opens event 7 of a peer, which waits for all other peers. */
function waiting({ events, to }) {
  const event = events.open(7);
  to.forEach(({ connection }) => assert.ok(event.waitFor(connection)));
  return event;
}

/** A peer that sends messages chosen by the test. */
async function talker() {
  const fake = await openFake("raknet");
  const sent = [];
  const { send } = fake.peer;
  fake.peer.send = function (bytes) {
    send.call(this, bytes);
    sent.push(decodeReady(bytes).message);
  };
  const events = new ReadyEvents();
  events.join(fake.connection);
  await settle();
  const say = (...all) => {
    fake.peer.events.push(...all.map((bytes) => (callbacks) => callbacks.onMessage({ bytes, reliability: "reliable-ordered", channel: 0 })));
    fake.wake();
  };
  return { ...fake, events, sent, say };
}

test("messages encode to the test vectors and decode from them, and malformed messages do not decode", () => {
  assert.equal(VECTORS.length, 5);
  for (const { hex: bytes, message, event } of VECTORS) {
    assert.equal(Buffer.from(encodeReady(message, event)).toString("hex"), bytes);
    assert.deepEqual(decodeReady(hex(bytes)), { message, event });
    assert.deepEqual(decodeReady(hex(`${bytes}00`)), { message, event });
    assert.equal(decodeReady(hex(bytes.slice(0, -2))), undefined);
  }
  assert.equal(decodeReady(hex("4a00000001")), undefined);
});

test("all peers agree regardless of the order in which they become ready", async () => {
  for (let order = 0; order < 6; order++) {
    const peers = await mesh(3);
    const all = peers.map(waiting);
    const completed = Promise.all(all.map((event) => event.whenCompleted()));
    const [first, second, third] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]][order].map((index) => all[index]);
    first.set(true);
    await settle();
    second.set(true);
    second.set(false);
    await settle();
    third.set(true);
    await settle();
    assert.ok(all.every(({ isCompleted }) => !isCompleted));
    assert.deepEqual([first.status, second.status], ["set", "unset"]);
    second.set(true);
    await completed;
    assert.ok(all.every(({ status }) => status === "all-set"));
    peers.forEach(({ events }) => assert.deepEqual(events.stats(), { malformed: 0, unexpected: 0 }));
  }
});

test("an event waits for late joiners, but not for peers that have left", async () => {
  const [a, b, c] = await mesh(3);
  const [ready, late] = [a.events.open(7), b.events.open(7)];
  ready.waitFor(a.to.get(b).connection);
  ready.set(true);
  await settle();
  assert.equal(ready.isCompleted, false);
  late.waitFor(b.to.get(a).connection);
  late.set(true);
  await ready.whenCompleted();
  // The event also waits for a peer that never sends anything.
  ready.waitFor(a.to.get(c).connection);
  assert.equal(ready.isCompleted, false);
  const completed = ready.whenCompleted();
  a.to.get(c).end();
  await completed;
  assert.equal(ready.statusOf(a.to.get(c).connection), undefined);
  assert.equal(ready.waitFor(a.to.get(c).connection), false);
  assert.equal(ready.stopWaitingFor(a.to.get(b).connection), true);
  assert.equal(ready.stopWaitingFor(a.to.get(b).connection), false);
});

test("a forced event completes at all peers and stays completed", async () => {
  const peers = await mesh(3);
  const all = peers.map(waiting);
  await settle();
  all[1].force();
  await Promise.all(all.map((event) => event.whenCompleted()));
  all.forEach((event) => event.set(false));
  await settle();
  assert.ok(all.every(({ isCompleted, status }) => isCompleted && status === "force-all-set"));
});

test("messages about unknown events, or from peers that an event does not wait for, have no effect", async () => {
  const { events, sent, say, connection } = await talker();
  const event = events.open(7);
  event.set(true);
  assert.equal(event.status, "all-set");
  say(encodeReady("unset", 7), encodeReady("force-all-set", 7), encodeReady("query", 7), encodeReady("set", 8), hex("44000000"));
  assert.deepEqual([event.status, sent, events.stats()], ["all-set", [], { malformed: 1, unexpected: 4 }]);
  event.waitFor(connection);
  assert.deepEqual(sent, ["query", "set"]);
  assert.ok(events.remove(7) && !events.remove(7));
});

test("a query is answered, and a flood of queries queues one answer", async () => {
  const { events, sent, say, connection, peer, wake } = await talker();
  const event = events.open(7);
  event.waitFor(connection);
  say(encodeReady("query", 7));
  assert.deepEqual(sent, ["query"]);
  event.set(true);
  say(encodeReady("query", 7));
  assert.deepEqual(sent, ["query", "set", "set"]);
  peer.room = 0;
  say(...Array(1_000).fill(encodeReady("query", 7)));
  event.set(false);
  event.set(true);
  assert.equal(sent.length, 3);
  peer.room = Infinity;
  wake();
  await until(() => sent.length > 3, "the answer to the query is sent");
  await settle();
  assert.deepEqual(sent.slice(3), ["set"]);
});

test("a wait is cancelled by its signal, and invalid or too many events are refused", async () => {
  const { events, connection } = await talker();
  const event = events.open(7);
  assert.equal(events.open(7), event);
  const controller = new AbortController();
  const waited = event.whenCompleted({ signal: controller.signal });
  controller.abort(new Error("enough"));
  await assert.rejects(waited, /enough/);
  await assert.rejects(event.whenCompleted({ signal: controller.signal }), /enough/);
  for (const number of [0.5, 2 ** 31, -(2 ** 31) - 1, "1"]) {
    assert.throws(() => events.open(number), fails("bad-option", /number/));
  }
  for (let number = 100; number < 163; number++) {
    events.open(number);
  }
  assert.throws(() => events.open(200), fails("bad-option", /64 events/));
  events.join(connection);
  assert.throws(() => new ReadyEvents().join(connection), fails("bad-option", /another plugin/));
});
