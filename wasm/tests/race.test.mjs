// The choice of carriers of a connection to a relay, and their replacement, with fake carriers and a fake clock.

import assert from "node:assert/strict";
import { test } from "node:test";

import { HEAD_START_MS } from "../dist/transport/carrier.js";
import { Race } from "../dist/transport/race.js";
import { FakeCarrier, FakeClock, settled, startTransport } from "./fake-carriers.mjs";
import { openFake } from "./fake-peer.mjs";

/** Starts a race of carriers with these names. Carriers in `broken` cannot be created. */
function startRace(names, broken = []) {
  const clock = new FakeClock();
  const carriers = [];
  const won = [];
  const entrant = (name) => ({
    name,
    open: (events) => {
      if (broken.includes(name)) {
        throw new Error(`no ${name}`);
      }
      carriers.push(new FakeCarrier(name, events));
      return carriers.at(-1);
    },
  });
  const owner = { onWon: (name) => won.push(name) && { onOpen: () => undefined, onClose: () => won.push("closed") }, onFailed: (close) => won.push(close) };
  const race = new Race(names.map(entrant), owner, clock);
  return { clock, carriers, won, race, join: (...others) => race.join(others.map(entrant), 3_000) };
}

test("only one carrier is opened if it opens within its head start", async () => {
  const { clock, carriers, won } = startRace(["webtransport", "websocket"]);
  await clock.pass(HEAD_START_MS - 1);
  carriers[0].open();
  await clock.pass(10_000);
  assert.deepEqual([won, carriers.length], [["webtransport"], 1]);
});

test("head starts do not add up, the first open carrier is used and the other carriers are closed", async () => {
  const { clock, carriers, won } = startRace(["webtransport", "webrtc", "websocket"]);
  await clock.pass(HEAD_START_MS);
  assert.deepEqual(carriers.map(({ name }) => name), ["webtransport", "webrtc", "websocket"]);
  carriers[1].open();
  assert.deepEqual(won, ["webrtc"]);
  assert.deepEqual(carriers.map(({ isClosed }) => isClosed), [true, false, true]);
  carriers[1].events.onClose({ code: 1006, reason: "" });
  assert.deepEqual(won, ["webrtc", "closed"]);
});

test("an open WebSocket is delayed briefly for a better carrier", async () => {
  const late = startRace(["webtransport", "websocket"]);
  await late.clock.pass(HEAD_START_MS + 90);
  late.carriers[1].open();
  await late.clock.pass(29);
  assert.deepEqual(late.won, []);
  late.carriers[0].open();
  assert.deepEqual([late.won, late.carriers[1].isClosed], [["webtransport"], true]);
  const slow = startRace(["webtransport", "websocket"]);
  await slow.clock.pass(HEAD_START_MS + 90);
  slow.carriers[1].open();
  await slow.clock.pass(31);
  assert.deepEqual([slow.won, slow.carriers[0].isClosed], [["websocket"], true]);
  const failed = startRace(["webtransport", "websocket"]);
  await failed.clock.pass(HEAD_START_MS + 90);
  failed.carriers[1].open();
  failed.carriers[0].events.onClose({ code: 1006, reason: "" });
  assert.deepEqual(failed.won, ["websocket"]);
  const refused = startRace(["webtransport", "websocket"]);
  await refused.clock.pass(HEAD_START_MS + 90);
  refused.carriers[1].open();
  refused.carriers[1].events.onClose({ code: 4404, reason: "unknown target" });
  refused.carriers[0].events.onClose({ code: 1006, reason: "" });
  await refused.clock.pass(1_000);
  assert.deepEqual(refused.won, [{ code: 4404, reason: "unknown target" }]);
});

test("the next carrier starts at once when a carrier fails during its head start, and a cancelled race closes its carriers", async () => {
  const { clock, carriers, won, race } = startRace(["webtransport", "webrtc", "websocket"]);
  await clock.pass(10);
  carriers[0].events.onClose({ code: 1006, reason: "no UDP" });
  assert.equal(carriers.length, 2);
  await clock.pass(HEAD_START_MS);
  assert.equal(carriers.length, 3);
  race.cancel();
  carriers[1].events.onClose({ code: 1006, reason: "" });
  assert.deepEqual([won, carriers[2].isClosed], [[], true]);
});

test("carriers that join a race start at once, and carriers that are already opening continue", async () => {
  const { clock, carriers, won, join } = startRace(["webtransport", "webrtc"]);
  await clock.pass(10);
  join("webtransport", "webrtc", "websocket");
  assert.deepEqual(carriers.map(({ name }) => name), ["webtransport", "webrtc", "websocket"]);
  await clock.pass(HEAD_START_MS);
  assert.equal(carriers.length, 3);
  carriers[0].open();
  assert.deepEqual([won, carriers.map(({ isClosed }) => isClosed)], [["webtransport"], [false, true, true]]);
});

test("a carrier that failed joins a race again, and the race ends after the new time limit", async () => {
  const { clock, carriers, won, join } = startRace(["webtransport", "webrtc"]);
  carriers[0].events.onClose({ code: 4404, reason: "unknown target" });
  join("webtransport", "webrtc");
  assert.deepEqual(carriers.map(({ name }) => name), ["webtransport", "webrtc", "webtransport"]);
  await clock.pass(2_999);
  assert.deepEqual(won, []);
  await clock.pass(1);
  assert.deepEqual(won, [{ code: 1006, reason: "no answer within 3000 ms" }]);
});

/**
 * The number of round trips to open each carrier. WebTransport needs `/transports`, QUIC and the session; data
 * channels need `/transports`, ICE, DTLS and SCTP; the WebSocket needs TCP and HTTP.
 */
const ROUND_TRIPS = { webtransport: 4, webrtc: 8, websocket: 2 };
/** The round trips of the RakNet handshake. */
const HANDSHAKE = 3;

for (const [what, silent, winner] of [
  ["everything opens", [], "webtransport"],
  ["WebTransport is not answered", ["webtransport"], "websocket"],
  ["UDP is blocked", ["webtransport", "webrtc"], "websocket"],
]) {
  test(`where ${what}, a page is connected within a second at a round trip of 100 ms`, async () => {
    const clock = new FakeClock();
    const entrants = Object.keys(ROUND_TRIPS).map((name) => ({
      name,
      open: (events) => {
        const carrier = new FakeCarrier(name, events);
        if (!silent.includes(name)) {
          clock.set(() => carrier.isClosed || carrier.open(), ROUND_TRIPS[name] * 100);
        }
        return carrier;
      },
    }));
    const won = [];
    new Race(entrants, { onWon: (name) => won.push([name, clock.now()]) && { onOpen: () => undefined }, onFailed: () => won.push("nobody") }, clock);
    await clock.pass(2_000);
    const [[name, at]] = won;
    assert.equal(name, winner);
    assert.ok(at + HANDSHAKE * 100 <= 1_000, `open after ${at} ms`);
  });
}

test("a race without a winner reports the close code of the relay if there is one", async () => {
  const { carriers, won } = startRace(["webtransport", "websocket"]);
  carriers[0].events.onClose({ code: 1006, reason: "" });
  carriers[1].events.onClose({ code: 1013, reason: "full" });
  assert.deepEqual(won, [{ code: 1013, reason: "full" }]);
});

test("a carrier that cannot be created counts as failed at any position", async () => {
  const first = startRace(["webtransport", "websocket"], ["webtransport"]);
  await settled();
  first.carriers[0].open();
  assert.deepEqual(first.won, ["websocket"]);
  const later = startRace(["webtransport", "websocket"], ["websocket"]);
  await later.clock.pass(HEAD_START_MS);
  later.carriers[0].open();
  assert.deepEqual(later.won, ["webtransport"]);
  const all = startRace(["webtransport", "websocket"], ["webtransport", "websocket"]);
  assert.deepEqual(all.won, [], "onFailed must not be called before the constructor has returned");
  await settled();
  assert.deepEqual(all.won, [{ code: 1006, reason: "Error: no websocket" }]);
});

test("only the winner of a race requests a flow, until the relay answers", async (t) => {
  const { transport, carriers, clock, events } = startTransport(t);
  await clock.pass(HEAD_START_MS);
  assert.equal(carriers.length, 2);
  carriers.forEach(({ request }) => assert.equal(request.url.search, "?target=game&defer=1"));
  assert.equal(transport.name, undefined);
  carriers[0].open();
  await settled();
  assert.deepEqual([transport.name, events, carriers[1].isClosed], ["webtransport", ["open"], true]);
  // On a lossy carrier, the flow request is repeated until the relay answers.
  await clock.pass(1_000);
  assert.equal(carriers[0].requests, 3);
  carriers[0].nameFlow(false);
  await clock.pass(5_000);
  assert.equal(carriers[0].requests, 3);
});

test("a silent carrier is closed only after another carrier has the flow", async (t) => {
  const { transport, carriers, clock, events, streams } = startTransport(t);
  carriers[0].open();
  await settled();
  carriers[0].nameFlow(false);
  transport.send(new Uint8Array(100));
  await clock.pass(900);
  carriers[0].events.onDatagram(new Uint8Array(1));
  await clock.pass(30_000);
  assert.deepEqual(events, ["open", 1], "a carrier must not count as silent while nothing is sent");
  transport.send(new Uint8Array(100));
  await clock.pass(5_000);
  assert.deepEqual(events, ["open", 1, "interrupted"]);
  assert.deepEqual([transport.name, transport.hasRoom], [undefined, false]);
  // UDP is blocked, so that only the WebSocket opens.
  const socket = carriers.find(({ name, isClosed }) => name === "websocket" && !isClosed);
  assert.match(socket.request.url.search, /resume=secret/);
  socket.open();
  await clock.pass(HEAD_START_MS);
  assert.deepEqual([socket.requests, carriers[0].isClosed], [1, false]);
  socket.nameFlow(true);
  assert.deepEqual([transport.name, carriers[0].isClosed], ["websocket", true]);
  assert.deepEqual(events, ["open", 1, "interrupted", "resumed"]);
  assert.deepEqual([streams.at(0), streams.at(-1)], [false, true]);
});

test("a peer is notified that its carrier is a stream", async () => {
  const { peer } = await openFake("raknet");
  assert.equal(peer.isStream, true);
});

test("a better carrier takes over when it opens later", async (t) => {
  const { transport, carriers, clock, events, streams } = startTransport(t);
  carriers[0].events.onClose({ code: 1006, reason: "" });
  carriers[1].open();
  await settled();
  carriers[1].nameFlow(false);
  await clock.pass(16_000);
  assert.deepEqual(carriers.map(({ name }) => name), ["webtransport", "websocket", "webtransport"]);
  carriers[2].events.onClose({ code: 1006, reason: "" });
  assert.equal(transport.name, "websocket");
  // The better carrier is tried again after a longer interval.
  await clock.pass(9_000);
  assert.equal(carriers.length, 3);
  await clock.pass(22_000);
  assert.equal(carriers.length, 4);
  carriers[3].open();
  await settled();
  assert.deepEqual([transport.name, carriers[3].requests], ["websocket", 1]);
  // The relay closes the previous carrier. This close may arrive before the answer on the new carrier.
  carriers[1].events.onClose({ code: 4409, reason: "resumed by another connection" });
  carriers[3].nameFlow(true);
  assert.deepEqual([transport.name, events], ["webtransport", ["open", "interrupted", "resumed"]]);
  assert.deepEqual([streams.at(0), streams.at(-1)], [true, false]);
});

test("silent data channels are replaced, and used again later", async (t) => {
  const { transport, carriers, clock, events, streams } = startTransport(t, { carriers: ["webtransport", "webrtc", "websocket"] });
  const names = (from) => carriers.slice(from).map(({ name }) => name);
  carriers[0].events.onClose({ code: 1006, reason: "" });
  carriers[1].open();
  await settled();
  carriers[1].nameFlow(false);
  assert.deepEqual([transport.name, names(0)], ["webrtc", ["webtransport", "webrtc"]]);
  // WebTransport is unavailable, and is tried again at intervals.
  transport.send(new Uint8Array(100));
  await clock.pass(3_600);
  assert.deepEqual([transport.name, events, carriers[1].isClosed], [undefined, ["open", "interrupted"], false]);
  carriers[2].events.onClose({ code: 1006, reason: "" });
  await clock.pass(HEAD_START_MS);
  assert.deepEqual(names(2), ["webtransport", "webrtc", "websocket"]);
  carriers[3].events.onClose({ code: 1006, reason: "" });
  carriers[4].open();
  await settled();
  carriers[4].nameFlow(true);
  assert.deepEqual([transport.name, carriers[1].isClosed, streams.at(-1)], ["websocket", true, true]);
  await clock.pass(31_000);
  assert.deepEqual(names(5), ["webtransport", "webrtc"]);
  carriers[6].open();
  await settled();
  assert.match(carriers[6].request.url.search, /resume=secret/);
  carriers[6].nameFlow(true);
  assert.deepEqual([transport.name, carriers[4].isClosed, streams.at(-1)], ["webrtc", true, false]);
  assert.deepEqual(events, ["open", "interrupted", "resumed"]);
});

test("a better carrier that cannot take over the flow is closed, and the current carrier stays in use", async (t) => {
  const { transport, carriers, clock, events } = startTransport(t);
  carriers[0].events.onClose({ code: 1006, reason: "" });
  carriers[1].open();
  await settled();
  carriers[1].nameFlow(false);
  await clock.pass(16_000);
  carriers[2].open();
  await clock.pass(10_000);
  assert.deepEqual([carriers[2].requests, carriers[2].isClosed, transport.name], [4, true, "websocket"]);
  assert.deepEqual(events, ["open"]);
  transport.close();
  assert.equal(carriers[1].isClosed, true);
});

/** Starts a transport over a WebSocket, and opens the better carrier that it tries afterwards. */
async function startUpgrade(t, { opens = true } = {}) {
  const started = startTransport(t);
  const { carriers, clock } = started;
  carriers[0].events.onClose({ code: 1006, reason: "" });
  carriers[1].open();
  await settled();
  carriers[1].nameFlow(false);
  await clock.pass(16_000);
  if (opens) carriers[2].open();
  return started;
}

test("control messages on the WebSocket do not answer the flow request of the better carrier, which is tried again when the WebSocket is lost", async (t) => {
  const { transport, carriers, clock } = await startUpgrade(t);
  carriers[1].nameFlow(false);
  await clock.pass(10_000);
  assert.deepEqual([carriers[2].requests, carriers[2].isClosed, transport.name], [4, true, "websocket"]);
  // The unresponsive carrier is tried again when the WebSocket is lost.
  carriers[1].events.onClose({ code: 1006, reason: "" });
  await clock.pass(1_000);
  assert.ok(carriers.length > 3);
});

test("a better carrier to which the relay gives another flow is closed and tried again later", async (t) => {
  const { transport, carriers, clock } = await startUpgrade(t);
  carriers[2].nameFlow(false);
  assert.deepEqual([carriers[2].isClosed, transport.name], [true, "websocket"]);
  await clock.pass(31_000);
  assert.equal(carriers.length, 4);
  carriers[3].open();
  carriers[3].nameFlow(true);
  assert.equal(transport.name, "webtransport");
});

test("datagrams too long for a better carrier are dropped, and RakNet's first request is truncated", async (t) => {
  const { transport, carriers } = startTransport(t);
  carriers[0].events.onClose({ code: 1006, reason: "" });
  carriers[1].open();
  await settled();
  const request = new Uint8Array(1_464);
  request[0] = 5;
  transport.send(request);
  transport.send(new Uint8Array(1_024));
  transport.send(new Uint8Array(1_025).fill(0x84));
  assert.deepEqual([carriers[1].sent, transport.dropped], [[1_024, 1_024], 1]);
});

/**
 * Starts a transport that has lost its WebTransport. Returns it with the two carriers of its first attempt to resume.
 */
async function startInterrupted(t, more) {
  const started = startTransport(t, more);
  const { carriers, clock } = started;
  carriers[0].open();
  await settled();
  carriers[0].nameFlow(false);
  await clock.pass(1_000);
  carriers[0].end(1006);
  await clock.pass(HEAD_START_MS);
  return started;
}

test("an unanswered attempt to resume is followed by further attempts until the flow expires", async (t) => {
  const { transport, carriers, clock, events } = await startInterrupted(t);
  await clock.pass(2_000);
  assert.equal(carriers.length, 3);
  await clock.pass(1_500);
  assert.deepEqual([carriers[1].isClosed, carriers[2].isClosed], [true, true]);
  assert.ok(carriers.length > 3);
  await clock.pass(25_000);
  assert.deepEqual(events, ["open", "interrupted"]);
  await clock.pass(1_500);
  assert.deepEqual([transport.name, events], [undefined, ["open", "interrupted", "relay-closed 1006"]]);
  assert.ok(carriers.every(({ isClosed }) => isClosed), "every carrier must be closed");
  const count = carriers.length;
  await clock.pass(60_000);
  assert.equal(carriers.length, count);
});

test("an unresponsive carrier is closed only when another carrier has the flow, because closing it would close the flow", async (t) => {
  const { transport, carriers, clock } = await startInterrupted(t, { carriers: ["websocket"] });
  const first = carriers.find(({ isClosed }) => !isClosed);
  first.open();
  // After 3.75 s without an answer, the next attempt starts.
  await clock.pass(5_000);
  const second = carriers.findLast((carrier) => carrier !== first && !carrier.isClosed);
  assert.deepEqual([transport.name, first.isClosed], [undefined, false]);
  second.open();
  await settled();
  second.nameFlow(true);
  assert.deepEqual([transport.name, first.isClosed, second.isClosed], ["websocket", true, false]);
});

test("a silent carrier is detected in a tab whose timers are delayed", async (t) => {
  const { transport, carriers, clock, events } = startTransport(t, { carriers: ["websocket"] });
  const [socket] = carriers;
  socket.open();
  socket.nameFlow(false);
  transport.send(new Uint8Array(100));
  for (let look = 0; look < 6; look++) {
    // A timer of half a second fires after a whole second.
    clock.block(1_000);
    await clock.pass(0);
  }
  assert.deepEqual(events, ["open", "interrupted"]);
});

test("an interrupted connection is closed at the timeout of its flow, even if carriers open without naming the flow", async (t) => {
  const { carriers, clock, events } = await startInterrupted(t, { carriers: ["websocket"] });
  for (let passed = 0; passed < 30_000; passed += 100) {
    carriers.filter(({ isOpen, isClosed }) => !isOpen && !isClosed).forEach((carrier) => {
      carrier.isOpen = true;
      carrier.open();
    });
    await clock.pass(100);
  }
  assert.deepEqual(events, ["open", "interrupted", "relay-closed 1006"]);
});

test("a better carrier that never opens is abandoned and tried again later", async (t) => {
  const { transport, carriers, clock } = await startUpgrade(t, { opens: false });
  await clock.pass(30_000);
  assert.deepEqual([carriers[2].isClosed, transport.name], [true, "websocket"]);
  await clock.pass(31_000);
  assert.ok(carriers.length >= 4);
});

test("a WebSocket counts as silent only if its buffer does not shrink while the page is active", async (t) => {
  const { transport, carriers, clock, events } = startTransport(t, { carriers: ["websocket"] });
  const [socket] = carriers;
  socket.open();
  socket.nameFlow(false);
  socket.bufferedAmount = 60_000;
  transport.send(new Uint8Array(100));
  for (let passed = 0; passed < 10_000; passed += 500) {
    await clock.pass(500);
    socket.bufferedAmount -= 1_000;
  }
  assert.deepEqual(events, ["open"], "a WebSocket with a shrinking buffer must not count as silent");
  socket.nameFlow(false);
  transport.send(new Uint8Array(100));
  clock.block(20_000);
  await clock.pass(1_000);
  assert.deepEqual(events, ["open"], "a WebSocket must not count as silent while the page is blocked");
  await clock.pass(3_600);
  assert.deepEqual(events, ["open", "interrupted"]);
  assert.match(carriers[1].request.url.search, /resume=secret/);
});

test("a WebSocket counts as silent even if the operating system occasionally accepts a few bytes", async (t) => {
  const { transport, carriers, clock, events } = startTransport(t, { carriers: ["websocket"] });
  carriers[0].open();
  carriers[0].nameFlow(false);
  transport.send(new Uint8Array(100));
  for (let passed = 0; passed < 4_000; passed += 500) {
    carriers[0].bufferedAmount = passed % 1_000;
    await clock.pass(500);
  }
  assert.deepEqual(events, ["open", "interrupted"]);
});

test("a WebSocket sends no flow request to a relay without flows", async (t) => {
  const { transport, carriers, clock, events } = startTransport(t, { carriers: ["websocket"] });
  carriers[0].open();
  transport.send(new Uint8Array(100));
  await clock.pass(60_000);
  assert.deepEqual([carriers[0].requests, events], [0, ["open"]]);
});

test("a refusal is reported with the code of the relay, and a single carrier does not defer its flow", async (t) => {
  const one = startTransport(t);
  one.carriers[0].open();
  await settled();
  one.carriers[0].events.onClose({ code: 4404, reason: "unknown target" });
  assert.deepEqual(one.events, ["open", "relay-closed 4404"]);
  const other = startTransport(t, { carriers: ["websocket"] });
  assert.equal(other.carriers[0].request.url.search, "?target=game");
  other.carriers[0].events.onClose({ code: 1006, reason: "" });
  assert.deepEqual(other.events, ["relay-unreachable 1006"]);
  const third = startTransport(t);
  third.carriers[0].events.onClose({ code: 4429, reason: "too often" });
  third.carriers[1].events.onClose({ code: 1006, reason: "" });
  assert.deepEqual(third.events, ["relay-closed 4429"]);
});

test("a connection is closed when another connection takes its flow over", async (t) => {
  const { carriers, clock, events } = startTransport(t);
  carriers[0].open();
  await settled();
  carriers[0].nameFlow(false);
  carriers[0].events.onClose({ code: 4409, reason: "resumed by another connection" });
  await clock.pass(60_000);
  assert.deepEqual([events, carriers.length], [["open", "relay-closed 4409"], 1]);
  const back = startTransport(t);
  back.carriers[0].open();
  await settled();
  back.carriers[0].nameFlow(false);
  back.carriers[0].events.onClose({ code: 1006, reason: "" });
  await back.clock.pass(200);
  back.carriers[1].events.onClose({ code: 4409, reason: "resumed by another connection" });
  back.carriers[2].events.onClose({ code: 1006, reason: "" });
  await back.clock.pass(60_000);
  assert.deepEqual([back.events, back.carriers.length], [["open", "interrupted", "relay-closed 4409"], 3]);
});

test("a carrier that opens but passes no datagrams is replaced before the connection opens", async (t) => {
  const { transport, carriers, clock, events } = startTransport(t);
  carriers[0].open();
  await settled();
  transport.send(new Uint8Array(4));
  await clock.pass(1_700);
  assert.deepEqual([transport.name, carriers.length], ["webtransport", 1]);
  await clock.pass(100);
  assert.deepEqual([transport.name, carriers[0].isClosed], [undefined, true]);
  assert.deepEqual(carriers.map(({ name }) => name), ["webtransport", "websocket"]);
  carriers[1].open();
  await settled();
  assert.deepEqual([carriers[1].sent, events], [[4], ["open"]], "datagrams that the server has not received must be resent");
  carriers[1].nameFlow(false);
  await clock.pass(20_000);
  assert.deepEqual([transport.name, carriers[2].name, events], ["websocket", "webtransport", ["open"]]);
});

test("a carrier that is lost before it received a datagram is replaced, and a carrier that received one is kept", async (t) => {
  const lost = startTransport(t);
  lost.carriers[0].open();
  await settled();
  lost.carriers[0].events.onClose({ code: 1006, reason: "" });
  lost.carriers[1].open();
  await settled();
  assert.deepEqual([lost.transport.name, lost.events], ["websocket", ["open"]]);
  lost.carriers[1].events.onClose({ code: 1006, reason: "" });
  assert.deepEqual(lost.events, ["open", "relay-closed 1006"]);
  const answered = startTransport(t);
  answered.carriers[0].open();
  await settled();
  answered.transport.send(new Uint8Array(4));
  answered.carriers[0].events.onDatagram(new Uint8Array(7));
  await answered.clock.pass(5_000);
  assert.deepEqual([answered.transport.name, answered.events, answered.carriers.length], ["webtransport", ["open", 7], 1]);
});

const WEBTRANSPORT = { port: 443, path: "/wt", certificate_hashes: [] };

/** Starts a transport with an open WebSocket to a relay that answers `/transports` with this status and body. */
async function startAnswered(t, status, body) {
  t.mock.method(globalThis, "fetch", async () => new Response(body, { status }));
  const started = startTransport(t);
  const [better] = started.carriers;
  started.offered = await better.request.announced();
  better.events.onClose({ code: 1006, reason: "" });
  started.carriers[1].open();
  await settled();
  started.carriers[1].nameFlow(false);
  return started;
}

for (const [what, status, body, offered] of [
  ["a list", 200, JSON.stringify({ webtransport: WEBTRANSPORT, later: 7 }), { webtransport: WEBTRANSPORT }],
  ["a failure", 503, "", {}],
  ["a refusal", 429, "{}", {}],
  ["null", 200, "null", {}],
  ["an array", 200, "[]", {}],
  ["a text", 200, '"webtransport"', {}],
  ["a page", 200, "<!doctype html>", {}],
]) {
  test(`if the relay answers the request for its transports with ${what}, WebTransport is still tried later`, async (t) => {
    const started = await startAnswered(t, status, body);
    assert.deepEqual(started.offered, offered);
    const request = new Uint8Array(1_464).fill(5);
    started.transport.send(request);
    await started.clock.pass(16_000);
    assert.deepEqual(started.carriers[1].sent, [1_024]);
    assert.equal(started.carriers[2]?.name, "webtransport");
  });
}

for (const [what, status, body] of [
  ["does not know the request", 404, ""],
  ["has no other transport", 200, "{}"],
  ["announces unusable transports", 200, JSON.stringify({ webtransport: null, webrtc: { port: "443" } })],
  ["announces incomplete transports", 200, JSON.stringify({ webtransport: { ...WEBTRANSPORT, certificate_hashes: [7] }, webrtc: { port: 443 } })],
]) {
  test(`with a relay that ${what}, datagrams have their full length and never become shorter`, async (t) => {
    const { transport, carriers, clock, events, offered } = await startAnswered(t, status, body);
    assert.deepEqual(offered, {});
    transport.send(new Uint8Array(1_464).fill(5));
    carriers[1].events.onDatagram(new Uint8Array(7));
    await clock.pass(60_000);
    assert.deepEqual([carriers[1].sent, carriers.length], [[1_464], 2]);
    // The relay now offers WebTransport, with datagrams shorter than the server's.
    t.mock.method(globalThis, "fetch", async () => new Response(JSON.stringify({ webtransport: WEBTRANSPORT })));
    carriers[1].events.onClose({ code: 1006, reason: "" });
    assert.deepEqual(await carriers[2].request.announced(), { webtransport: WEBTRANSPORT });
    carriers[2].open();
    await settled();
    carriers[2].nameFlow(true);
    await clock.pass(60_000);
    assert.deepEqual(carriers.map(({ name }) => name), ["webtransport", "websocket", "websocket"]);
    transport.send(new Uint8Array(1_464).fill(0x84));
    assert.deepEqual([carriers[2].sent, transport.dropped, events], [[1_464], 0, ["open", 7, "interrupted", "resumed"]]);
  });
}

test("the wait for the transports of an unresponsive relay is limited to 10 s", async (t) => {
  const unanswered = (_url, { signal }) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  t.mock.method(globalThis, "fetch", unanswered);
  const { transport, carriers, clock } = startTransport(t);
  let offered;
  void carriers[0].request.announced().then((said) => (offered = said));
  await clock.pass(9_000);
  assert.equal(offered, undefined);
  await clock.pass(1_000);
  await settled();
  assert.deepEqual(offered, {});
  transport.close();
});
