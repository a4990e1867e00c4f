// Every transition between the states of a transport to a relay. The tests infer the state from its name, its carriers
// and its events.

import assert from "node:assert/strict";
import { test } from "node:test";

import { settled, startTransport } from "./fake-carriers.mjs";

/** The longest time before a better carrier is tried for the first time. */
const UPGRADE_MS = 16_000;
/** The time for which the relay of these tests keeps a flow. */
const WITHIN_MS = 30_000;

/** Returns the observable state of a transport. */
function shown({ transport, carriers, events }) {
  // The closing event includes a code, separated by a space.
  if (events.some((event) => / /.test(event))) {
    return "ended";
  }
  if (transport.name === undefined) {
    return events.lastIndexOf("interrupted") > events.lastIndexOf("resumed") ? "lost" : "racing";
  }
  return carriers.filter(({ isClosed }) => !isClosed).length > 1 ? "migrating" : "attached";
}

/** Returns the last carrier that was opened. */
const last = ({ carriers }) => carriers.at(-1);

/**
 * Functions that bring a transport into each state. The flow's carrier is `carriers[1]`, a WebSocket, and WebTransport
 * is the better carrier.
 */
const INTO = {
  racing: (t) => startTransport(t),
  "attached without a flow": (t) => {
    const started = INTO.racing(t);
    started.carriers[0].open();
    return started;
  },
  attached: async (t) => {
    const started = INTO.racing(t);
    started.carriers[0].end(1006);
    started.carriers[1].open();
    await settled();
    started.carriers[1].nameFlow(false);
    return started;
  },
  migrating: async (t) => {
    const started = await INTO.attached(t);
    await started.clock.pass(UPGRADE_MS);
    return started;
  },
  lost: async (t) => {
    const started = await INTO.attached(t);
    // A carrier lost immediately would be replaced with a delay.
    await started.clock.pass(2_000);
    started.carriers[1].end(1006);
    return started;
  },
  "lost during the race": async (t) => {
    const started = await INTO.migrating(t);
    started.carriers[1].end(1006);
    return started;
  },
};

/** Opens a better carrier, which requests the flow. */
function request(started) {
  last(started).open();
  assert.equal(last(started).requests, 1);
}

/** Makes the carriers of the next attempt fail. */
function failAttempt({ carriers }, code) {
  carriers.filter(({ isClosed }) => !isClosed).forEach((carrier) => carrier.end(code));
}

const TRANSITIONS = [
  ["racing", "attached", "a carrier opens", ({ carriers }) => carriers[0].open()],
  ["racing", "ended", "all carriers fail", ({ carriers }) => [0, 1].forEach((index) => carriers[index].end(1006))],
  ["attached without a flow", "racing", "the carrier fails before anything arrived by it", ({ carriers }) => carriers[0].end(1006)],
  ["attached without a flow", "attached", "the relay names the flow", ({ carriers }) => carriers[0].nameFlow(false)],
  ["attached", "attached", "the relay names the flow again", ({ carriers }) => carriers[1].nameFlow(false)],
  ["attached", "migrating", "a better carrier is tried", ({ clock }) => clock.pass(UPGRADE_MS)],
  ["attached", "lost", "the carrier is lost", ({ carriers }) => carriers[1].end(1006)],
  [
    "attached",
    "lost",
    "the carrier is silent",
    ({ transport, clock }) => {
      transport.send(new Uint8Array(100));
      return clock.pass(4_000);
    },
  ],
  ["attached", "ended", "the relay ends the flow", ({ carriers }) => carriers[1].end(4404, "unknown target")],
  ["migrating", "attached", "the better carrier fails", (started) => last(started).end(1006)],
  [
    "migrating",
    "attached",
    "the better carrier takes over",
    (started) => {
      request(started);
      last(started).nameFlow(true);
      assert.equal(started.transport.name, "webtransport");
    },
  ],
  [
    "migrating",
    "attached",
    "the relay gives the better carrier another flow",
    (started) => {
      request(started);
      last(started).nameFlow(false);
      assert.equal(started.transport.name, "websocket");
    },
  ],
  [
    "migrating",
    "attached",
    "the relay does not answer the better carrier",
    async (started) => {
      request(started);
      await started.clock.pass(4_000);
      assert.equal(started.transport.name, "websocket");
    },
  ],
  ["migrating", "lost", "the carrier is lost during the race", ({ carriers }) => carriers[1].end(1006)],
  [
    "migrating",
    "lost",
    "the carrier is lost while the better one requests the flow",
    (started) => {
      request(started);
      started.carriers[1].end(4409, "resumed by another connection");
      assert.equal(last(started).isClosed, false);
    },
  ],
  ["migrating", "ended", "the relay ends the flow", ({ carriers }) => carriers[1].end(4404, "unknown target")],
  [
    "lost",
    "attached",
    "another carrier gets the flow",
    (started) => {
      request(started);
      last(started).nameFlow(true);
      assert.equal(started.events.at(-1), "resumed");
    },
  ],
  [
    "lost",
    "lost",
    "an attempt fails and the next one follows",
    async (started) => {
      const { carriers, clock } = started;
      await clock.pass(300);
      const count = carriers.length;
      failAttempt(started, 1006);
      await clock.pass(1_000);
      assert.ok(carriers.length > count);
    },
  ],
  [
    "lost",
    "ended",
    "the relay does not know the flow",
    (started) => {
      request(started);
      last(started).nameFlow(false);
    },
  ],
  [
    "lost during the race",
    "attached",
    "the better carrier, which was opening before, gets the flow",
    ({ transport, carriers, events }) => {
      const [, , better, stream] = carriers;
      assert.deepEqual([better.name, better.isClosed, stream.name], ["webtransport", false, "websocket"]);
      better.open();
      assert.deepEqual([better.requests, stream.isClosed], [1, true]);
      better.nameFlow(true);
      assert.deepEqual([transport.name, carriers.length, events.at(-1)], ["webtransport", 4, "resumed"]);
    },
  ],
  [
    "lost during the race",
    "attached",
    "a carrier that joined the race gets the flow",
    async (started) => {
      last(started).open();
      await started.clock.pass(250);
      last(started).nameFlow(true);
      const { transport, carriers } = started;
      assert.deepEqual([transport.name, carriers[2].isClosed], ["websocket", true]);
    },
  ],
  [
    "lost during the race",
    "lost",
    "all carriers of the race fail and the next attempt follows after a pause",
    async (started) => {
      const { carriers, clock } = started;
      failAttempt(started, 1006);
      assert.equal(carriers.length, 4);
      await clock.pass(1_000);
      assert.ok(carriers.length > 4);
    },
  ],
  [
    "lost during the race",
    "lost",
    "no carrier of the race opens within the time of an attempt",
    async ({ carriers, clock }) => {
      await clock.pass(4_000);
      assert.deepEqual([carriers[2].isClosed, carriers[3].isClosed, carriers.length > 4], [true, true, true]);
    },
  ],
  ["lost", "ended", "the relay wants another token", (started) => refuseAll(started, 4401)],
  ["lost", "ended", "the relay refuses the flow", (started) => refuseAll(started, 4404)],
  ["lost", "ended", "the relay does not keep the flow any longer", ({ clock }) => clock.pass(WITHIN_MS)],
];

/** Makes the relay refuse all carriers of an attempt. */
async function refuseAll(started, code) {
  await started.clock.pass(300);
  failAttempt(started, code);
}

for (const [from, to, why, act] of TRANSITIONS) {
  test(`${from} becomes ${to} when ${why}`, async (t) => {
    const started = await INTO[from](t);
    assert.equal(shown(started), from.split(" ")[0]);
    await act(started);
    assert.equal(shown(started), to);
  });
}

for (const from of Object.keys(INTO)) {
  test(`${from}: closing the transport closes its carriers and causes no callbacks`, async (t) => {
    const started = await INTO[from](t);
    assert.equal(shown(started), from.split(" ")[0]);
    const { transport, carriers, clock, events } = started;
    const [called, opened] = [events.length, carriers.length];
    transport.close();
    await clock.pass(WITHIN_MS + UPGRADE_MS);
    assert.deepEqual([events.length, carriers.length, transport.name], [called, opened, undefined]);
    assert.ok(carriers.every(({ isClosed }) => isClosed));
  });
}
