// The loop, with a peer that only counts calls.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Loop } from "../dist/loop.js";

function fixture({ datagrams = 0, hasRoom = true, timeout } = {}) {
  const seen = { timeouts: [], sent: 0, errors: [], looks: 0, runs: 0 };
  const peer = {
    waiting: datagrams,
    timeout,
    handleTimeout: (now) => seen.timeouts.push(now),
    pollTransmit: () => (peer.waiting > 0 ? Uint8Array.of(peer.waiting--) : undefined),
    pollTimeout: () => (peer.waiting > 0 ? 0 : (peer.timeout ?? Infinity)),
  };
  const sink = { name: "udp", hasRoom, send: () => seen.sent++ };
  const loop = new Loop(peer, sink, () => seen.looks++, (error) => seen.errors.push(error), () => seen.runs++);
  return { seen, peer, sink, loop };
}

/** Mocks a clock that only the test advances. It can jump before its timers fire, as in a suspended tab. */
function standingClock(t) {
  let now = 1_000;
  t.mock.timers.enable({ apis: ["setTimeout"] });
  t.mock.method(performance, "now", () => now);
  return {
    pass(ms) {
      for (let passed = 0; passed < ms; passed++) {
        now += 1;
        t.mock.timers.tick(1);
      }
    },
    jump: (ms) => (now += ms),
  };
}

/** Runs tasks until a condition holds, without advancing the clock. */
async function tasksUntil(condition) {
  for (let tasks = 0; !condition(); tasks++) {
    assert.ok(tasks < 100_000, "the condition never became true");
    await new Promise((resolve) => setImmediate(resolve));
  }
}

test("several schedule calls in one task cause one run", async (t) => {
  const { seen, loop } = fixture({ datagrams: 3 });
  t.after(() => loop.stop());
  loop.schedule();
  loop.schedule();
  assert.equal(seen.runs, 0);
  await Promise.resolve();
  assert.equal(seen.runs, 1);
  assert.equal(seen.sent, 3);
});

test("events caused by a sent datagram are handled in the same run", (t) => {
  const { seen, peer, loop } = fixture({ datagrams: 1 });
  t.after(() => loop.stop());
  let looksBefore;
  const { pollTransmit } = peer;
  peer.pollTransmit = () => {
    looksBefore = seen.looks;
    return pollTransmit();
  };
  loop.run();
  assert.deepEqual([seen.sent, seen.runs, seen.looks > looksBefore], [1, 1, true]);
});

test("sending pauses while the socket is full and resumes by itself", (t) => {
  const { pass } = standingClock(t);
  const { seen, peer, sink, loop } = fixture({ datagrams: 2, hasRoom: false });
  t.after(() => loop.stop());
  loop.run();
  assert.equal(peer.waiting, 2);
  pass(50);
  assert.equal(peer.waiting, 2);
  assert.ok(seen.runs > 1 && seen.runs <= 20, `${seen.runs} runs in 50 ms`);
  sink.hasRoom = true;
  pass(30);
  assert.equal(seen.sent, 2);
});

test("the timer fires at the timeout of the peer", (t) => {
  const { pass } = standingClock(t);
  const { seen, peer, loop } = fixture({ timeout: performance.now() + 30 });
  t.after(() => loop.stop());
  loop.run();
  peer.timeout = undefined;
  pass(29);
  assert.equal(seen.timeouts.length, 1);
  pass(1);
  assert.equal(seen.timeouts.length, 2);
  assert.equal(seen.timeouts[1] - seen.timeouts[0], 30);
});

test("without a transport, the loop polls only the timeouts of the peer, and it sends once a transport is open", (t) => {
  const { pass } = standingClock(t);
  const { seen, peer, sink, loop } = fixture({ datagrams: 1, hasRoom: false });
  t.after(() => loop.stop());
  sink.name = undefined;
  loop.run();
  pass(1_000);
  assert.ok(seen.runs >= 4 && seen.runs <= 6, `${seen.runs} runs in a second`);
  [sink.name, sink.hasRoom] = ["udp", true];
  loop.run();
  assert.deepEqual([seen.sent, peer.waiting], [1, 0]);
});

test("after a suspension, received datagrams are handled before the timeout without another timer", async (t) => {
  const { jump, pass } = standingClock(t);
  const { seen, peer, loop } = fixture({ timeout: performance.now() + 10 });
  t.after(() => loop.stop());
  loop.run();
  peer.timeout = undefined;
  jump(1_000);
  pass(10);
  assert.equal(seen.timeouts.length, 1, "received datagrams must be handled before the timeout");
  // No further timer fires, as in a hidden tab.
  await tasksUntil(() => seen.timeouts.length === 2);
});

test("after a suspension, received datagrams are handled before the timeout even if the page sends first", async (t) => {
  const { jump } = standingClock(t);
  const { seen, peer, loop } = fixture({ datagrams: 1, timeout: performance.now() + 10 });
  t.after(() => loop.stop());
  peer.waiting = 0;
  loop.run();
  peer.timeout = undefined;
  jump(300);
  peer.waiting = 1;
  loop.schedule();
  await Promise.resolve();
  // Received datagrams also cause runs.
  loop.run();
  assert.deepEqual([seen.timeouts.length, seen.sent], [1, 0]);
  await tasksUntil(() => seen.timeouts.length === 2);
  assert.equal(seen.sent, 1);
});

test("after a suspension, timeouts are deferred for further datagrams up to a limit", async (t) => {
  const { jump } = standingClock(t);
  const { seen, peer, loop } = fixture({ timeout: performance.now() + 10 });
  t.after(() => loop.stop());
  loop.run();
  peer.timeout = undefined;
  // The timer is 60 ms late, just more than the 50 ms that indicate a suspension.
  jump(70);
  loop.run();
  const receive = async (tasks) => {
    for (let task = 0; task < tasks; task++) {
      loop.schedule();
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  await receive(100);
  assert.equal(seen.timeouts.length, 1);
  await tasksUntil(() => seen.timeouts.length === 2);
  peer.timeout = performance.now() + 10;
  loop.run();
  jump(70);
  loop.run();
  jump(10_000);
  await receive(100);
  assert.ok(seen.timeouts.length > 3, "a flood must not defer timeouts forever");
});

test("a loop stopped during the handling of queued datagrams does nothing more", async (t) => {
  const { jump } = standingClock(t);
  const { seen, loop } = fixture({ timeout: performance.now() + 10 });
  loop.run();
  jump(300);
  loop.run();
  loop.stop();
  for (let tasks = 0; tasks < 100; tasks++) {
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.equal(seen.timeouts.length, 1);
});

test("an exception of the peer is reported, and a stopped loop does nothing", (t) => {
  const { pass } = standingClock(t);
  const { seen, peer, loop } = fixture({ timeout: performance.now() + 5 });
  peer.handleTimeout = () => {
    throw new Error("broken");
  };
  loop.run();
  assert.equal(seen.errors[0].message, "broken");
  loop.stop();
  loop.schedule();
  loop.run();
  pass(15);
  assert.equal(seen.errors.length, 1);
});
