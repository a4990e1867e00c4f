// The loop, with a peer that only counts calls.

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { test } from "node:test";

import { Loop } from "../dist/loop.js";

function fixture({ datagrams = 0, hasRoom = true, timeout } = {}) {
  const seen = { timeouts: [], sent: 0, errors: [], runs: 0 };
  const peer = {
    waiting: datagrams,
    timeout,
    handleTimeout: (now) => seen.timeouts.push(now),
    pollTransmit: () => (peer.waiting > 0 ? Uint8Array.of(peer.waiting--) : undefined),
    pollTimeout: () => (peer.waiting > 0 ? 0 : (peer.timeout ?? Infinity)),
  };
  const sink = { hasRoom, send: () => seen.sent++ };
  const loop = new Loop(peer, sink, () => seen.runs++, (error) => seen.errors.push(error));
  return { seen, peer, sink, loop };
}

test("requests of one task are one run", async (t) => {
  const { seen, loop } = fixture({ datagrams: 3 });
  t.after(() => loop.stop());
  loop.schedule();
  loop.schedule();
  assert.equal(seen.runs, 0);
  await Promise.resolve();
  assert.equal(seen.runs, 1);
  assert.equal(seen.sent, 3);
});

test("nothing is sent while the socket is full, and sending resumes by itself", async (t) => {
  const { seen, peer, sink, loop } = fixture({ datagrams: 2, hasRoom: false });
  t.after(() => loop.stop());
  loop.run();
  assert.equal(peer.waiting, 2);
  await sleep(50);
  assert.equal(peer.waiting, 2);
  assert.ok(seen.runs > 1 && seen.runs <= 20, `${seen.runs} runs in 50 ms`);
  sink.hasRoom = true;
  await sleep(30);
  assert.equal(seen.sent, 2);
});

test("the timer fires at the timeout of the peer", async (t) => {
  const { seen, peer, loop } = fixture({ timeout: performance.now() + 30 });
  t.after(() => loop.stop());
  loop.run();
  peer.timeout = undefined;
  assert.equal(seen.timeouts.length, 1);
  await sleep(60);
  assert.equal(seen.timeouts.length, 2);
  assert.ok(seen.timeouts[1] - seen.timeouts[0] >= 28);
});

test("after a suspension, received datagrams are handled before the timeout", async (t) => {
  const { seen, peer, loop } = fixture({ timeout: performance.now() + 10 });
  t.after(() => loop.stop());
  loop.run();
  peer.timeout = undefined;
  let arrived;
  setTimeout(() => (arrived = seen.timeouts.length), 20);
  const end = performance.now() + 300;
  while (performance.now() < end);
  await sleep(20);
  assert.equal(arrived, 1, "the timeout was not handled before received datagrams");
  assert.equal(seen.timeouts.length, 2);
});

test("after a suspension, received datagrams are handled before the timeout, also if the page sends first", async (t) => {
  const { seen, peer, loop } = fixture({ datagrams: 1, timeout: performance.now() + 10 });
  t.after(() => loop.stop());
  peer.waiting = 0;
  loop.run();
  peer.timeout = undefined;
  let arrived;
  setTimeout(() => (arrived = seen.timeouts.length), 0);
  const end = performance.now() + 300;
  while (performance.now() < end);
  peer.waiting = 1;
  loop.schedule();
  await Promise.resolve();
  // Datagrams that arrive are runs, too.
  loop.run();
  assert.deepEqual([seen.timeouts.length, seen.sent], [1, 0]);
  await sleep(20);
  assert.equal(arrived, 1);
  assert.deepEqual([seen.timeouts.length, seen.sent], [2, 1]);
});

test("a peer that throws is reported, and a stopped loop does nothing", async () => {
  const { seen, peer, loop } = fixture({ timeout: performance.now() + 5 });
  peer.handleTimeout = () => {
    throw new Error("broken");
  };
  loop.run();
  assert.equal(seen.errors[0].message, "broken");
  loop.stop();
  loop.schedule();
  loop.run();
  await sleep(15);
  assert.equal(seen.errors.length, 1);
});
