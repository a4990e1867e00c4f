// The WebTransport carrier, with a fake session.

import assert from "node:assert/strict";
import { test } from "node:test";

import { atPageEnd, onPageLeft } from "../dist/page.js";
import { webTransport } from "../dist/transport/webtransport.js";
import { PROTOCOLS } from "./protocols.mjs";
import { outlives, spoilWebTransport } from "./spoiled.mjs";

const settled = () => new Promise((resolve) => setImmediate(resolve));
const OFFER = { port: 4433, path: "/wt", certificate_hashes: ["AAEC"] };

/**
 * Opens a carrier over a fake session with these `datagrams`. `take` is called with each datagram that the carrier
 * writes.
 */
async function openCarrier(t, datagrams, take = () => undefined) {
  const played = { written: [], calls: [] };
  played.readable = new ReadableStream({ start: (controller) => (played.controller = controller) });
  const write = async (datagram) => {
    await take();
    played.written.push(datagram);
  };
  const writable = new WritableStream({ write });
  globalThis.WebTransport = class {
    ready = Promise.resolve();
    closed = new Promise((resolve) => (played.end = resolve));
    datagrams = (played.datagrams = Object.assign(datagrams(writable), { readable: played.readable }));
    constructor(url, options) {
      Object.assign(played, { url: new URL(url), options });
    }
    close(info) {
      played.closed = info;
      played.beforeClose = played.written.length;
    }
  };
  t.after(() => delete globalThis.WebTransport);
  const request = { url: new URL("wss://relay.example/ws?target=game&defer=1"), token: "t0k", hasControl: true, announced: async () => ({ webtransport: OFFER }) };
  const note = (name) => (calls) => played.calls.push([name, calls]);
  const events = { onOpen: note("open"), onDatagram: note("datagram"), onControl: note("control"), onClose: note("close") };
  const carrier = webTransport.open(request, events);
  await settled();
  return { carrier, played };
}

/** Mocks a page. `leave` calls its `pagehide` listeners, and runs microtasks after each, as a browser does. */
function playPage(t) {
  const listeners = new Set();
  const parts = { document: {}, addEventListener: (type, listener) => type === "pagehide" && listeners.add(listener) };
  Object.assign(globalThis, parts);
  t.after(() => Object.keys(parts).forEach((name) => delete globalThis[name]));
  const leave = async () => {
    for (const listener of [...listeners]) {
      (listener.handleEvent ?? listener)();
      await settled();
    }
  };
  return { leave };
}

test("if the announcement refuses the page, the carrier closes with the reason of the relay and opens no session", async (t) => {
  globalThis.WebTransport = class {
    constructor() {
      assert.fail("no session must be opened");
    }
  };
  t.after(() => delete globalThis.WebTransport);
  const refused = { code: 4403, reason: "this relay does not accept pages of this origin" };
  const ends = [];
  const nothing = () => undefined;
  const request = { url: new URL("wss://relay.example/ws?target=game"), hasControl: true, announced: async () => ({ refused }) };
  webTransport.open(request, { onOpen: nothing, onDatagram: nothing, onControl: nothing, onClose: (end) => ends.push(end) });
  await settled();
  assert.deepEqual(ends, [refused]);
});

const usual = (maxDatagramSize) => (writable) => ({ writable, maxDatagramSize });

test("a session is opened at the relay's host with the announced parameters", async (t) => {
  const { played } = await openCarrier(t, usual(1_200));
  assert.equal(played.url.href, "https://relay.example:4433/wt?target=game&defer=1&protocol=rakwire.relay.1&token=t0k");
  const { congestionControl, requireUnreliable, serverCertificateHashes } = played.options;
  assert.deepEqual([congestionControl, requireUnreliable], ["low-latency", true]);
  assert.deepEqual(serverCertificateHashes, [{ algorithm: "sha-256", value: Uint8Array.of(0, 1, 2) }]);
  assert.deepEqual(played.calls, [["open", undefined]]);
});

for (const [size, longest] of [[1_000, 1_000], [1_024, 1_024], [1_100, 1_024], [1_200, 1_024]]) {
  test(`if the browser reports datagrams of up to ${size} bytes, the carrier sends up to ${longest}`, async (t) => {
    const { carrier, played } = await openCarrier(t, usual(size));
    assert.equal(carrier.longestDatagram, longest);
    carrier.send(new Uint8Array(longest));
    assert.equal(carrier.bufferedAmount, longest);
    await settled();
    assert.deepEqual([carrier.bufferedAmount, played.written.map(({ length }) => length)], [0, [longest]]);
  });
}

for (const [host, hashes, expected] of [
  ["localhost", ["AAEC"], ["localhost", "127.0.0.1", "[::1]"]],
  ["game.localhost", ["AAEC"], ["game.localhost", "127.0.0.1", "[::1]"]],
  ["localhost", [], ["localhost"]],
  ["relay.example", ["AAEC"], ["relay.example"]],
]) {
  test(`for a relay at ${host} with ${hashes.length} certificate hashes, only ${expected.join(", ")} is tried`, async (t) => {
    const tried = [];
    globalThis.WebTransport = class {
      constructor(url) {
        tried.push(new URL(url).hostname);
        this.ready = Promise.reject(new Error("refused"));
        this.closed = this.ready;
      }
      close() {}
    };
    t.after(() => delete globalThis.WebTransport);
    const ends = [];
    const nothing = () => undefined;
    const announced = async () => ({ webtransport: { ...OFFER, certificate_hashes: hashes } });
    const request = { url: new URL(`wss://${host}/ws?target=game`), hasControl: true, announced };
    webTransport.open(request, { onOpen: nothing, onDatagram: nothing, onControl: nothing, onClose: (end) => ends.push(end) });
    await settled();
    assert.deepEqual([tried, ends], [expected, [{ code: 1006, reason: "Error: refused" }]]);
  });
}

test("the age and number of datagrams queued in the browser are limited, with the old and with the new option names", async (t) => {
  const older = await openCarrier(t, usual(1_200));
  const ages = { outgoingMaxAge: 500, incomingMaxAge: 500 };
  const limitsOf = ({ writable: _, readable: __, maxDatagramSize: ___, ...limits }) => limits;
  assert.deepEqual(limitsOf(older.played.datagrams), { ...ages, outgoingHighWaterMark: 256, incomingHighWaterMark: 256 });
  const buffered = { outgoingMaxBufferedDatagrams: 1, incomingMaxBufferedDatagrams: 1 };
  const newer = await openCarrier(t, (writable) => ({ ...usual(1_200)(writable), ...buffered }));
  const limits = { outgoingMaxBufferedDatagrams: 256, incomingMaxBufferedDatagrams: 256 };
  assert.deepEqual(limitsOf(newer.played.datagrams), { ...ages, ...limits });
});

test("datagrams are sent through createWritable in browsers that have it", async (t) => {
  const { carrier, played } = await openCarrier(t, (writable) => ({ createWritable: () => writable, maxDatagramSize: 1_200 }));
  carrier.send(Uint8Array.of(1, 2));
  carrier.requestFlow();
  await settled();
  assert.deepEqual(played.written[0], Uint8Array.of(1, 2));
  assert.equal(new TextDecoder().decode(played.written[1]), 'rakwire:{"type":"flow"}');
});

/** The close information of a session that the client closes. */
const CLOSED = { closeCode: 1000, reason: "" };

test("closing a session is delayed for sent datagrams, but only for a limited time", async (t) => {
  for (const [take, beforeClose] of [[undefined, 2], [() => new Promise(() => undefined), 0]]) {
    const { carrier, played } = await openCarrier(t, usual(1_200), take);
    t.mock.timers.enable({ apis: ["setTimeout"] });
    carrier.send(Uint8Array.of(1));
    carrier.send(Uint8Array.of(2));
    carrier.close();
    await settled();
    t.mock.timers.tick(19);
    assert.equal(played.closed, undefined);
    t.mock.timers.tick(1);
    assert.deepEqual([played.closed, played.beforeClose], [CLOSED, beforeClose]);
    t.mock.timers.reset();
  }
});

test("leaving a page delays the close of a session until its queued datagrams are sent", async (t) => {
  const page = playPage(t);
  const { carrier, played } = await openCarrier(t, usual(1_200));
  const stay = onPageLeft(() => {
    [1, 2, 3].forEach((byte) => carrier.send(Uint8Array.of(byte)));
    carrier.close(true);
    page.until = performance.now() + 20;
  }, () => false);
  t.after(stay);
  await page.leave();
  assert.ok(performance.now() >= page.until);
  assert.deepEqual([played.closed, played.beforeClose], [CLOSED, 3]);
});

test("an error while a page closes a connection is reported, and the other connections are closed too", async (t) => {
  const page = playPage(t);
  const { carrier, played } = await openCarrier(t, usual(1_200));
  const { mock } = t.mock.method(console, "error", () => undefined);
  const fail = (what) => () => {
    throw new Error(what);
  };
  const ended = [];
  for (const [name, end] of [["one", fail("one")], ["other", () => (atPageEnd.push(fail("end")), carrier.close(true))]]) {
    t.after(onPageLeft(() => (ended.push(name), end()), () => false));
  }
  await page.leave();
  // Each callback is called twice, because the browser may have interrupted the first call.
  assert.deepEqual(ended, ["one", "other", "one", "other"]);
  const reported = mock.calls.map(({ arguments: [, { message }] }) => message);
  assert.deepEqual([reported, played.closed], [["one", "one", "end", "end"], CLOSED]);
});

test("a datagram that begins with `rakwire:` is a control message, and a closed session has the code of the relay", async (t) => {
  const { carrier, played } = await openCarrier(t, usual(1_200));
  played.controller.enqueue(Uint8Array.of(7));
  played.controller.enqueue(new TextEncoder().encode("rakwire:{}"));
  await settled();
  played.end({ closeCode: 4404, reason: "unknown target" });
  await settled();
  assert.deepEqual(played.calls.slice(1), [["datagram", Uint8Array.of(7)], ["control", "{}"], ["close", { code: 4404, reason: "unknown target" }]]);
  assert.equal(carrier.hasRoom, false);
});

for (const protocol of PROTOCOLS) {
  test(`${protocol.name}: a client continues after arbitrary data from a session`, (t) => outlives(t, protocol, "webtransport", spoilWebTransport));
}
