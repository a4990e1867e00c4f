// Pings without a connection, in Node, through a real relay, to real servers.

import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { test } from "node:test";
import { WebSocket } from "ws";

import { discover, ping } from "rakwire";

import { RakwireError } from "../dist/errors.js";
import { readPong, writePing } from "../dist/raknet-wire.js";
import { openRelay } from "../dist/transport/relay.js";
import { fails, LIMIT_MS, startCpp, startEcho, startRelay } from "./support.mjs";

const GUID = 0x0123456789abcdefn;

/** The default options of pings in these tests. */
const USUAL = { webSocket: WebSocket, timeoutMs: LIMIT_MS };

const at = (relay) => `ws://${relay.address}/ws`;
const text = (bytes) => new TextDecoder().decode(bytes);

/** Starts a UDP socket that sends the result of `answer(datagram, count)`, unless it is `undefined`. */
async function startUdp(context, answer) {
  const socket = createSocket("udp4");
  context.after(() => socket.close());
  let count = 0;
  socket.on("message", (datagram, { port, address }) => {
    const reply = answer(datagram, ++count);
    if (reply !== undefined) socket.send(reply, port, address);
  });
  await new Promise((resolve) => socket.bind(0, "127.0.0.1", resolve));
  return `127.0.0.1:${socket.address().port}`;
}

/** Encodes a pong that answers a ping. */
function pong(time, data) {
  const bytes = Buffer.alloc(33 + data.length);
  bytes[0] = 0x1c;
  bytes.writeBigUInt64BE(time, 1);
  bytes.writeBigUInt64BE(GUID, 9);
  Buffer.from(writePing("any", 0n, 0n)).copy(bytes, 17, 9, 25);
  bytes.set(Buffer.from(data), 33);
  return bytes;
}

test("pings are encoded and pongs decoded as in RakNet, and invalid pongs are ignored", () => {
  const hex = "010000000000000007" + "00ffff00fefefefefdfdfdfd12345678" + "0123456789abcdef";
  assert.equal(Buffer.from(writePing("any", 7n, GUID)).toString("hex"), hex);
  assert.equal(Buffer.from(writePing("open-connections", 7n, GUID)).toString("hex"), `02${hex.slice(2)}`);
  for (const length of [0, 5, 399]) {
    const contents = readPong(pong(7n, "x".repeat(length)));
    assert.deepEqual({ ...contents, data: contents.data.length }, { time: 7n, guid: GUID, data: length, protocolVersion: undefined });
  }
  // The length prefix identifies a Minecraft Bedrock server, and therefore its protocol version.
  for (const [written, expected, version] of [["\0\x05MCPE;", "MCPE;", 11], ["\0\0", "", 11], ["\0\x06MCPE;", "\0\x06MCPE;"], ["\0", "\0"]]) {
    const { data, protocolVersion } = readPong(pong(7n, written));
    assert.deepEqual([text(data), protocolVersion], [expected, version]);
  }
  const whole = pong(7n, "");
  const others = [pong(7n, "x".repeat(400)), whole.subarray(0, 32), Buffer.alloc(0), Buffer.concat([Buffer.of(0x1d), whole.subarray(1)])];
  for (let index = 17; index < 33; index++) {
    const changed = Buffer.from(whole);
    changed[index] ^= 1;
    others.push(changed);
  }
  others.forEach((other) => assert.equal(readPong(other), undefined));
});

test("pings of both scopes return the advertisement of the server", async (t) => {
  const [echo, cpp] = [await startEcho(t, "--advertise", "a lobby"), await startCpp(t)];
  const relay = await startRelay(t, { echo: echo.address, cpp: cpp.address });
  for (const scope of ["any", "open-connections", undefined]) {
    const found = await ping(at(relay), { target: "echo", ...USUAL, ...(scope && { scope }) });
    assert.equal(text(found.data), "a lobby");
    assert.equal(found.target, "echo");
    assert.ok(typeof found.guid === "bigint" && found.latencyMs >= 0);
  }
  assert.notEqual((await ping(at(relay), { target: "cpp", ...USUAL })).data.length, 0);
});

test("a server list contains the servers that answer, in order", async (t) => {
  const [one, two] = [await startEcho(t, "--advertise", "one"), await startEcho(t, "--advertise", "two")];
  const silent = await startUdp(t, () => undefined);
  const relay = await startRelay(t, { two: two.address, silent, one: one.address });
  const options = { targets: ["two", "silent", "one"], webSocket: WebSocket };
  let found;
  // On a busy machine a server may answer too late, so it is pinged again with a longer timeout.
  for (const timeoutMs of [700, 5_000, 30_000]) {
    found = await discover(at(relay), { ...options, timeoutMs });
    if (found.length === 2) {
      break;
    }
  }
  assert.deepEqual(found.map(({ target, data }) => [target, text(data)]), [["two", "two"], ["one", "one"]]);
  assert.deepEqual(await discover(at(relay), { ...options, targets: ["silent"], timeoutMs: 700 }), []);
  assert.deepEqual(await discover(at(relay), { ...options, targets: [] }), []);
});

test("servers refused by the relay are left out and reported, and an unreachable relay fails the call", async (t) => {
  const echo = await startEcho(t, "--advertise", "one");
  const relay = await startRelay(t, { one: echo.address });
  const unavailable = [];
  const onUnavailable = (target, { code, message }) => unavailable.push([target, code, message.includes("unknown target")]);
  const found = await discover(at(relay), { ...USUAL, targets: ["two", "one", "three"], onUnavailable });
  assert.deepEqual(found.map(({ target }) => target), ["one"]);
  assert.deepEqual(unavailable.sort(), [["three", "relay-closed", true], ["two", "relay-closed", true]]);
  await assert.rejects(discover(at(relay), { ...USUAL, targets: ["one", ""] }), fails("bad-option", /target/));
  await relay.stop();
  await assert.rejects(discover(at(relay), { ...USUAL, targets: ["one", "two"] }), fails("relay-unreachable", /cannot be reached/));
});

/** Returns a WebSocket class that counts its simultaneous instances, and answers pings after a delay. */
function countingWebSocket() {
  const counts = { now: 0, most: 0, all: 0 };
  class Counting extends EventTarget {
    bufferedAmount = 0;
    constructor(url, protocols) {
      super();
      counts.protocols = protocols;
      counts.all += 1;
      counts.most = Math.max(counts.most, ++counts.now);
      queueMicrotask(() => this.dispatchEvent(new Event("open")));
    }
    send(datagram) {
      const data = new Uint8Array(pong(new DataView(datagram.buffer).getBigUint64(1), "here")).buffer;
      setImmediate(() => this.dispatchEvent(Object.assign(new Event("message"), { data })));
    }
    close() {
      counts.now -= 1;
    }
  }
  return { counts, webSocket: Counting };
}

test("discover pings at most 16 servers at a time, with the token of the caller", async () => {
  const { counts, webSocket } = countingWebSocket();
  const targets = Array.from({ length: 100 }, (_, index) => `server ${index}`);
  const found = await discover("ws://relay/ws", { targets, webSocket, timeoutMs: LIMIT_MS, token: "v2.a-b" });
  assert.deepEqual(found.map(({ target }) => target), targets);
  assert.deepEqual([counts.now, counts.most], [0, 16]);
  assert.deepEqual(counts.protocols, ["rakwire.relay.1", "rakwire.token.v2.a-b"]);
  await assert.rejects(ping("ws://relay/ws", { target: "one", webSocket, token: "a b" }), fails("bad-option", /token/));
});

test("a failed discover call pings no further servers and reports nothing more", async () => {
  const { counts, webSocket } = countingWebSocket();
  const targets = Array.from({ length: 100 }, (_, index) => (index === 40 ? "" : `server ${index}`));
  await assert.rejects(discover("ws://relay/ws", { targets, webSocket, timeoutMs: LIMIT_MS }), fails("bad-option", /target/));
  assert.equal(counts.all, 0);
  let notified = 0;
  class Refusing extends webSocket {
    send() {
      setImmediate(() => this.dispatchEvent(Object.assign(new Event("close"), { code: 1013, reason: "full" })));
    }
  }
  const onUnavailable = () => {
    notified += 1;
    throw new Error("enough");
  };
  const full = targets.filter((target) => target !== "");
  await assert.rejects(discover("ws://relay/ws", { targets: full, webSocket: Refusing, timeoutMs: LIMIT_MS, onUnavailable }), /enough/);
  for (let round = 0; round < 20; round++) await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual([notified, counts.all, counts.now], [1, 16, 0]);
  // An abort reason never counts as an unavailable server.
  const controller = new AbortController();
  const reason = new RakwireError("no-answer", "enough");
  const asked = discover("ws://relay/ws", { targets: full, webSocket: Refusing, signal: controller.signal, onUnavailable });
  controller.abort(reason);
  await assert.rejects(asked, reason);
  assert.equal(notified, 1);
});

/** A WebSocket that cannot be opened. */
class Refused extends EventTarget {
  bufferedAmount = 0;
  constructor() {
    super();
    setImmediate(() => this.dispatchEvent(Object.assign(new Event("close"), { code: 1006, reason: "" })));
  }
  close() {}
}

test("cancelling ping, discover or connect cancels its HTTP request to the relay", async (t) => {
  const asked = [];
  let onAsked;
  t.mock.method(globalThis, "fetch", (_url, { signal }) => {
    asked.push(signal);
    onAsked();
    return new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  });
  const url = "ws://relay/elsewhere";
  const reason = new Error("enough");
  for (const ask of [(more) => ping(url, { target: "game", ...more }), (more) => discover(url, { targets: ["game"], ...more })]) {
    const controller = new AbortController();
    onAsked = () => controller.abort(reason);
    await assert.rejects(ask({ webSocket: Refused, timeoutMs: LIMIT_MS, signal: controller.signal }), reason);
  }
  await new Promise((resolve) => {
    const transport = openRelay({ url, carriers: ["websocket"], resume: true, webSocket: Refused }, {});
    onAsked = () => {
      transport.close();
      resolve();
    };
  });
  assert.deepEqual(asked.map(({ aborted }) => aborted), [true, true, true]);
});

/** A WebSocket that is still connecting. Closing it makes it fail. */
class Connecting extends EventTarget {
  static onFailed;
  bufferedAmount = 0;
  close() {
    setImmediate(() => {
      this.dispatchEvent(Object.assign(new Event("close"), { code: 1006, reason: "" }));
      Connecting.onFailed();
    });
  }
}

test("a cancelled ping sends the relay no requests", async (t) => {
  const fetched = t.mock.method(globalThis, "fetch", () => Promise.reject(new Error("the cancelled ping sent a request")));
  const failed = new Promise((resolve) => {
    Connecting.onFailed = resolve;
  });
  const controller = new AbortController();
  const options = { target: "game", webSocket: Connecting, timeoutMs: LIMIT_MS, signal: controller.signal };
  const pinged = ping("ws://relay/elsewhere", options);
  const reason = new Error("enough");
  controller.abort(reason);
  await assert.rejects(pinged, reason);
  await failed;
  assert.equal(fetched.mock.callCount(), 0);
});

test("a lost ping is resent, and a pong with the time of the server instead of the ping is accepted", async (t) => {
  const address = await startUdp(t, (datagram, count) => {
    assert.equal(datagram.length, 33);
    return count === 1 ? Buffer.of(0x1c, 1, 2, 3) : pong(99n, "late");
  });
  const relay = await startRelay(t, { game: address });
  const found = await ping(at(relay), { target: "game", ...USUAL });
  assert.equal(text(found.data), "late");
  assert.equal(found.guid, GUID);
});

test("errors of a ping describe the cause, and a signal cancels a ping", async (t) => {
  let onPing = () => undefined;
  const silent = await startUdp(t, () => onPing());
  const relay = await startRelay(t, { silent });
  const ask = (options) => ping(at(relay), { target: "silent", ...USUAL, ...options });
  await assert.rejects(ask({ timeoutMs: 100 }), fails("no-answer", /silent.*100 ms/));
  await assert.rejects(ask({ timeoutMs: -1 }), fails("bad-option", /timeoutMs/));
  await assert.rejects(ask({ scope: "all" }), fails("bad-option", /scope/));
  await assert.rejects(ask({ target: "" }), fails("bad-option", /target/));
  await assert.rejects(ask({ target: "missing" }), fails("relay-closed", /unknown target 'missing'/));
  const reason = new Error("enough");
  await assert.rejects(ask({ signal: AbortSignal.abort(reason) }), reason);
  const controller = new AbortController();
  onPing = () => controller.abort(reason);
  await assert.rejects(ask({ signal: controller.signal }), reason);
  await assert.rejects(discover(at(relay), { targets: ["silent"], signal: controller.signal, webSocket: WebSocket }), reason);
  await relay.stop();
  await assert.rejects(ask({}), fails("relay-unreachable", /cannot be reached/));
});
