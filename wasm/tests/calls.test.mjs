// Remote calls: between two connections in memory, over UDP, with a server in Rust, and with malicious and flooding
// peers.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { connect } from "rakwire";
import { bitStream, FunctionError, RemoteCalls } from "rakwire/calls";
import { bitstream, rabbit } from "rakwire/codec";

import { decodeCall, encodeCall } from "../dist/calls/schema.js";
import { openFake, openPair } from "./fake-peer.mjs";
import { openWith } from "./package-page.mjs";
import { fails, LIMIT_MS, startEcho, startPluginExample, until } from "./support.mjs";

const VECTORS = JSON.parse(readFileSync(new URL("calls.json", import.meta.url), "utf8"));
const REASONS = { unknown: 0, failed: 4 };
const hex = (text) => Uint8Array.from(Buffer.from(text, "hex"));
const settle = () => new Promise((resolve) => setImmediate(resolve));
const anybody = () => true;

const SCHEMA = {
  functions: {
    add: { arguments: rabbit.tuple(rabbit.u32, rabbit.u32), answer: rabbit.u32 },
    sum: { arguments: rabbit.list(rabbit.u32), answer: rabbit.u64 },
    wait: { arguments: rabbit.u8, answer: rabbit.u8 },
    shout: { arguments: rabbit.text(200), answer: rabbit.text(40) },
    mirror: {
      arguments: bitStream((writer, { x, is }) => (writer.write(bitstream.bool, is), writer.write(bitstream.f32, x)), (reader) => ({ is: reader.read(bitstream.bool), x: reader.read(bitstream.f32) })),
      answer: rabbit.f32,
    },
    nobody: { arguments: rabbit.nothing, answer: rabbit.nothing },
  },
  signals: { said: rabbit.text(100), add: rabbit.u8 },
};

const add = { isAllowed: anybody, handle: ([a, b]) => a + b };

/** Collects the errors that the package reports. */
function reports(t) {
  const reported = [];
  globalThis.reportError = (error) => reported.push(error);
  t.after(() => delete globalThis.reportError);
  return reported;
}

/** Two connected peers with the schema: the caller, and the peer that serves its functions. */
async function callPair(protocol, limits) {
  const pair = await openPair(protocol);
  const [client, server] = pair.map(({ connection }) => new RemoteCalls(connection, SCHEMA, limits));
  return { client, server, pair };
}

/** A peer that sends messages chosen by the test and records the answers. */
async function hostile(limits) {
  const fake = await openFake("raknet");
  const calls = new RemoteCalls(fake.connection, SCHEMA, limits);
  await settle();
  const sent = [];
  fake.peer.send = (bytes) => void sent.push(decodeCall(bytes));
  const say = (...all) => {
    fake.peer.events.push(...all.map((bytes) => (callbacks) => callbacks.onMessage({ bytes, reliability: "reliable", channel: 0 })));
    fake.wake();
  };
  return { ...fake, calls, sent, say };
}

const callOf = (number, name, payload) => encodeCall({ kind: "call", number, name, payload: Uint8Array.from(payload) });

test("messages encode to the test vectors and decode from them, and malformed messages do not decode", () => {
  assert.equal(VECTORS.length, 7);
  for (const { hex: expected, message: kind, number, name, payload, refusal, code = 0 } of VECTORS) {
    const message = {
      kind,
      ...(number !== undefined && { number }),
      ...(name !== undefined && { name }),
      ...(payload !== undefined && { payload: hex(payload) }),
      ...(refusal !== undefined && { reason: REASONS[refusal], code }),
    };
    assert.equal(Buffer.from(encodeCall(message)).toString("hex"), expected);
    assert.deepEqual(decodeCall(hex(expected)), message);
    // A message truncated within its header is invalid.
    const header = expected.length / 2 - (payload?.length ?? 0) / 2;
    for (let length = 0; length < header; length++) {
      assert.equal(decodeCall(hex(expected).subarray(0, length)), undefined);
    }
  }
  for (const bytes of ["7e00000000070361646463", "7f0400000000", "7f030341", "7f0341", `7f0341${"41".repeat(70)}`]) {
    assert.equal(decodeCall(hex(bytes)), undefined, bytes);
  }
});

test("calls and signals have the fingerprints of the test vectors", async () => {
  const fake = await openFake("raknet");
  const schema = { functions: { add: { arguments: rabbit.struct({ a: rabbit.u32, b: rabbit.u32 }), answer: rabbit.u32 } }, signals: { moved: rabbit.u8 } };
  const calls = new RemoteCalls(fake.connection, schema);
  const sent = [];
  fake.peer.send = (bytes) => void sent.push(Buffer.from(bytes).toString("hex"));
  calls.call("add", { a: 2, b: 3 }).catch(() => undefined);
  calls.signal("moved", 9);
  await settle();
  assert.deepEqual(sent, VECTORS.slice(5).map((vector) => vector.hex));
  calls.detach();
});

test("calls and signals of a peer with other types do not run and are reported", async () => {
  const pair = await openPair("raknet");
  const [client, newer] = pair.map(({ connection }, at) => new RemoteCalls(connection, {
    functions: { add: { arguments: rabbit.tuple(rabbit.u32, at ? rabbit.u16 : rabbit.u32), answer: rabbit.u32 }, sum: { arguments: rabbit.u8, answer: at ? rabbit.i32 : rabbit.u32 }, same: { arguments: rabbit.bool, answer: rabbit.bool } },
    signals: { said: at ? rabbit.list(rabbit.u8) : rabbit.text() },
  }));
  const ran = [];
  const handler = { isAllowed: anybody, handle: (value) => (ran.push(value), value) };
  ["add", "sum", "same"].forEach((name) => newer.register(name, handler));
  newer.connect("said", handler);
  const reported = [];
  client.onMismatch = (name) => reported.push(["client", name]);
  newer.onMismatch = (name) => reported.push(["newer", name]);
  await assert.rejects(client.call("add", [2, 3]), fails("schema-mismatch", /same version/));
  await assert.rejects(client.call("sum", 1), fails("schema-mismatch", /same version/));
  client.signal("said", "snow");
  assert.equal(await client.call("same", true), true);
  assert.deepEqual(ran, [true]);
  assert.deepEqual(reported.filter(([side]) => side === "newer"), [["newer", "add"], ["newer", "sum"], ["newer", "said"]]);
  assert.deepEqual([client.stats().mismatched, newer.stats().mismatched], [2, 3]);
});

for (const protocol of ["raknet", "game"]) {
  test(`${protocol}: a call returns the answer and uses the requested delivery`, async () => {
    const { client, server, pair } = await callPair(protocol);
    server.register("add", add);
    server.register("mirror", { isAllowed: anybody, handle: async ({ is, x }) => (is ? -x : x) });
    server.register("nobody", { isAllowed: anybody, handle: () => undefined });
    assert.equal(await client.call("add", [2, 3]), 5);
    assert.equal(await client.call("mirror", { is: true, x: 1.5 }), -1.5);
    assert.equal(await client.call("nobody", undefined), undefined);
    assert.equal(client.openCalls, 0);
    assert.equal(server.stats().calls, 3);
    if (protocol === "raknet") {
      const deliveries = [];
      const send = pair[1].peer.send;
      pair[1].peer.send = function (bytes, delivery) {
        deliveries.push([delivery & 7, delivery >> 5]);
        send.call(this, bytes, delivery);
      };
      await client.call("add", [1, 1], { reliability: "reliable-ordered", channel: 7 });
      await client.call("add", [1, 1], { reliability: "unreliable" });
      assert.deepEqual(deliveries, [[3, 7], [0, 0]]);
    }
  });
}

// The RakNet echo server does not echo messages of plugins.
test("game: calls and signals pass over a real connection, and a call on a closing connection fails", async (t) => {
  const { address } = await startEcho(t, "--protocol", "game");
  const connection = await connect(`udp://${address}`, { protocol: "game", timeoutMs: LIMIT_MS });
  // Echoed calls are served here.
  const calls = new RemoteCalls(connection, SCHEMA);
  calls.register("sum", { isAllowed: anybody, handle: (numbers) => numbers.reduce((sum, number) => sum + BigInt(number), 0n) });
  const numbers = Array.from({ length: 100 }, (_, index) => index);
  const sums = await Promise.all(numbers.slice(0, 60).map((last) => calls.call("sum", numbers.slice(0, last), { timeoutMs: LIMIT_MS })));
  assert.deepEqual(sums, numbers.slice(0, 60).map((last) => BigInt((last * (last - 1)) / 2)));
  const said = new Promise((resolve) => calls.connect("said", { isAllowed: anybody, handle: resolve }));
  calls.signal("said", "snow");
  assert.equal(await said, "snow");
  const call = calls.call("nobody", undefined, { timeoutMs: LIMIT_MS });
  await assert.rejects(call, fails("unknown-function", /no function/));
  const closing = connection.close();
  await assert.rejects(calls.call("add", [1, 2]), fails("not-connected", /ended/));
  await closing;
});

test("a server in Rust answers and calls back with the same schema", async (t) => {
  const { address } = await startPluginExample(t, "remote_calls_server");
  const schema = {
    functions: {
      add: { arguments: rabbit.tuple(rabbit.u32, rabbit.u32), answer: rabbit.u32 },
      square: { arguments: rabbit.u32, answer: rabbit.u64 },
    },
    signals: { squared: rabbit.u64 },
  };
  const connection = await connect(`udp://${address}`, { timeoutMs: LIMIT_MS });
  const calls = new RemoteCalls(connection, schema);
  const squared = new Promise((resolve) => calls.connect("squared", { isAllowed: anybody, handle: resolve }));
  calls.register("square", { isAllowed: anybody, handle: (side) => BigInt(side) ** 2n });
  const options = { timeoutMs: LIMIT_MS, channel: 3 };
  assert.equal(await calls.call("add", [20, 22], options), 42);
  await assert.rejects(calls.call("add", [0xffff_ffff, 1], options), (error) => error instanceof FunctionError && error.failure === 1);
  await assert.rejects(calls.call("square", 2, options), fails("unknown-function", /no function/));
  assert.equal(await squared, 1_000_000_000_000n);
  await connection.close();
});

/** Returns the exports of all examples in calls.md. */
async function examples() {
  const page = readFileSync(new URL("calls.md", import.meta.url), "utf8");
  const modules = [...page.matchAll(/^```js\n(.*?)^```$/gms)].map(([, code]) => {
    const source = code.replace(/from "(rakwire[^"]*)"/g, (_, entry) => `from ${JSON.stringify(import.meta.resolve(entry))}`);
    return import(`data:text/javascript,${encodeURIComponent(source)}`);
  });
  return Object.assign({}, ...await Promise.all(modules));
}

test("the examples in calls.md run", async (t) => {
  const { address } = await startPluginExample(t, "remote_calls_server");
  const { play, serve } = await examples();
  assert.deepEqual(await play(`udp://${address}`), [42, 1_000_000_000_000n]);
  const { u32, u64, tuple } = rabbit;
  const schema = { functions: { add: { arguments: tuple(u32, u32), answer: u32 }, square: { arguments: u32, answer: u64 } }, signals: { squared: u64 } };
  const server = await serve(schema, { host: "127.0.0.1" });
  t.after(() => server.close());
  assert.deepEqual(await play(`udp://127.0.0.1:${server.address.port}`), [42, 144n]);
});

test("a page and a server in Rust call each other through a relay", async (t) => {
  const { address } = await startPluginExample(t, "remote_calls_server");
  const { page, url } = await openWith(t, { game: address });
  const found = await page.evaluate(async (relay) => {
    const [{ connect }, { RemoteCalls }, { rabbit }] = await Promise.all(["index", "calls", "codec/index"].map((name) => import(`/dist/${name}.js`)));
    const { u32, u64, tuple } = rabbit;
    const schema = { functions: { add: { arguments: tuple(u32, u32), answer: u32 }, square: { arguments: u32, answer: u64 } }, signals: { squared: u64 } };
    const connection = await connect(relay, { target: "game", timeoutMs: 60_000 });
    const calls = new RemoteCalls(connection, schema);
    const isAllowed = () => true;
    calls.register("square", { isAllowed, handle: async (side) => BigInt(side) ** 2n });
    const squared = new Promise((resolve) => calls.connect("squared", { isAllowed, handle: resolve }));
    const found = [await calls.call("add", [20, 22], { timeoutMs: 60_000 }), String(await squared)];
    await connection.close();
    return found;
  }, url);
  assert.deepEqual(found, [42, "1000000000000"]);
});

test("unregistered and forbidden functions are not called", async (t) => {
  const reported = reports(t);
  const { client, server } = await callPair("raknet");
  let isMuted = true;
  const ran = [];
  const unregister = server.register("add", { isAllowed: () => !isMuted, handle: (pair) => ran.push(pair) });
  await assert.rejects(client.call("add", [1, 2]), fails("forbidden", /does not allow/));
  await assert.rejects(client.call("sum", []), fails("unknown-function", /no function/));
  server.register("sum", { isAllowed: () => { throw new Error("no"); }, handle: () => ran.push("sum") });
  await assert.rejects(client.call("sum", []), fails("forbidden", /does not allow/));
  assert.equal(reported.length, 1);
  assert.throws(() => server.register("add", add), fails("bad-option", /already has/));
  isMuted = false;
  // A signal with the name of a function does not run the function.
  client.signal("add", 1);
  unregister();
  await assert.rejects(client.call("add", [1, 2]), fails("unknown-function", /no function/));
  assert.deepEqual(ran, []);
  const { calls, refused, signals } = server.stats();
  assert.deepEqual({ calls, refused, signals }, { calls: 2, refused: 4, signals: 1 });
});

test("a failing function sends its code to the caller, and any other error is reported locally", async (t) => {
  const reported = reports(t);
  const { client, server } = await callPair("raknet");
  server.register("add", { isAllowed: anybody, handle: ([code, later]) => (later ? Promise.reject(new FunctionError(code)) : new FunctionError(300)) });
  await assert.rejects(client.call("add", [12, 1]), (error) => error instanceof FunctionError && error.failure === 12);
  await assert.rejects(client.call("add", [0, 0]), (error) => error instanceof FunctionError && error.failure === 0);
  server.register("shout", { isAllowed: anybody, handle: (text) => text.repeat(30) });
  await assert.rejects(client.call("shout", "hey"), fails("answer-too-long", /longer/));
  assert.equal(await client.call("shout", "!"), "!".repeat(30));
  await settle();
  assert.equal(reported.length, 2);
});

test("a call fails at its timeout, when its signal is aborted, and when its connection closes", async () => {
  const { client, server, pair } = await callPair("raknet");
  const signals = [];
  let finish;
  server.register("wait", {
    isAllowed: anybody,
    handle: (_, { signal }) => new Promise((resolve) => ((finish = resolve), signals.push(signal))),
  });
  await assert.rejects(client.call("wait", 1, { timeoutMs: 1 }), fails("timeout", /within 1 ms/));
  finish(7);
  await settle();
  // The answer arrives late.
  assert.equal(client.stats().unexpected, 1);
  const controller = new AbortController();
  const cancelled = client.call("wait", 2, { signal: controller.signal });
  const waiting = client.call("wait", 3);
  controller.abort(new Error("enough"));
  await assert.rejects(cancelled, /enough/);
  assert.equal(client.openCalls, 1);
  await settle();
  assert.equal(signals.length, 3);
  pair[0].end();
  await assert.rejects(waiting, fails("not-connected", /ended/));
  await assert.rejects(client.call("wait", 4), fails("not-connected", /ended/));
  assert.throws(() => client.signal("said", "x"), fails("not-connected", /ended/));
  pair[1].end();
  await settle();
  assert.ok(signals.every(({ aborted }) => aborted));
});

test("a call cancelled while queued is never sent, and the other calls keep their order", async () => {
  const { calls, peer, wake } = await hostile();
  const sent = [];
  peer.room = 0;
  peer.send = function (bytes) {
    Object.getPrototypeOf(this).send.call(this, bytes);
    sent.push(decodeCall(bytes).number ?? "signal");
  };
  const controller = new AbortController();
  const all = [1, 2, 3].map((number) => calls.call("wait", number, number === 2 ? { signal: controller.signal } : {}));
  all.forEach((call) => call.catch(() => undefined));
  calls.signal("said", "x");
  controller.abort(new Error("enough"));
  await assert.rejects(all[1], /enough/);
  assert.deepEqual(sent, []);
  peer.room = Infinity;
  wake();
  await until(() => sent.length === 3, "the queued messages are sent");
  assert.deepEqual(sent, [0, 2, "signal"]);
  calls.detach();
  await assert.rejects(all[0], fails("not-connected", /ended/));
});

test("signals reach all handlers that allow them, in the order of priority", async (t) => {
  const reported = reports(t);
  const { client, server } = await callPair("raknet");
  const log = [];
  const handler = (name) => ({ isAllowed: () => name !== "never", handle: (text) => void log.push(`${name} ${text}`) });
  server.connect("said", handler("low"), -1);
  server.connect("said", handler("first"));
  const disconnect = server.connect("said", handler("second"));
  server.connect("said", handler("high"), 5);
  server.connect("said", handler("never"), 9);
  server.connect("said", { isAllowed: anybody, handle: () => Promise.reject(new Error("no")) }, 7);
  client.signal("said", "a");
  await settle();
  disconnect();
  for (let count = 0; count < 63; count++) {
    client.signal("said", "b");
  }
  await until(() => server.stats().signals === 64, "the server has received all 64 signals");
  assert.deepEqual(log.slice(0, 7), ["high a", "first a", "second a", "low a", "high b", "first b", "low b"]);
  assert.equal(log.length, 4 + 63 * 3);
  await settle();
  assert.deepEqual([server.stats().refused, reported.length], [128, 64]);
});

test("a function is not run with invalid arguments", async () => {
  const { calls, sent, say } = await hostile();
  const ran = [];
  for (const name of ["add", "sum", "shout", "mirror"]) {
    calls.register(name, { isAllowed: anybody, handle: () => ran.push(name) });
  }
  // The list and the text announce lengths that exceed the maximum length of a message.
  say(callOf(1, "add", []), callOf(2, "sum", Array(5).fill(0xff)), callOf(3, "shout", [7, 255, 255]), callOf(4, "mirror", [1]));
  assert.deepEqual(sent, [1, 2, 3, 4].map((number) => ({ kind: "refusal", number, reason: 2, code: 0 })));
  // An empty name, names that every object has, and invalid UTF-8.
  say(callOf(5, "", []), callOf(6, "__proto__", []), callOf(7, "toString", []), hex("7f000000000801ff"), hex("7f0301ff"));
  assert.deepEqual(sent.slice(4), [5, 6, 7, 8].map((number) => ({ kind: "refusal", number, reason: 0, code: 0 })));
  assert.deepEqual(ran, []);
});

test("calls and signals above maxCalls are refused", async () => {
  const { calls, sent, say } = await hostile({ maxCalls: 4 });
  let running = 0;
  calls.register("wait", { isAllowed: anybody, handle: () => (++running, new Promise(() => undefined)) });
  calls.connect("said", { isAllowed: anybody, handle: () => (++running, new Promise(() => undefined)) });
  const signal = encodeCall({ kind: "signal", name: "said", payload: rabbit.pack(SCHEMA.signals.said, "x") });
  say(...Array.from({ length: 1_000 }, () => callOf(7, "wait", [1])), ...Array(1_000).fill(signal));
  assert.deepEqual([running, calls.stats().busy, sent.length], [4, 1_996, 996]);
  assert.deepEqual(sent[0], { kind: "refusal", number: 7, reason: 5, code: 0 });
  // The peer does not read the answers to its calls.
  const other = await hostile({ maxCalls: 4 });
  delete other.peer.send;
  other.peer.room = 0;
  let added = 0;
  other.calls.register("add", { isAllowed: anybody, handle: () => ++added });
  other.say(...Array.from({ length: 1_000 }, (_, number) => callOf(number, "add", rabbit.pack(SCHEMA.functions.add.arguments, [1, 2]))));
  assert.deepEqual([added, other.calls.stats().busy], [4, 996]);
  // A caller over the limit gets an error immediately.
  const waiting = Array.from({ length: 4 }, () => calls.call("wait", 1));
  waiting.forEach((call) => call.catch(() => undefined));
  await assert.rejects(calls.call("wait", 1), fails("too-many-calls", /wait for/));
  calls.detach();
  await Promise.allSettled(waiting);
});

test("unrequested and duplicate answers are ignored, and an invalid answer fails its call", async () => {
  const { calls, say, sent } = await hostile({ maxBytes: 128 });
  say(encodeCall({ kind: "answer", number: 0, payload: hex("2a") }), hex("7f02000000090000"));
  const call = calls.call("add", [1, 2]);
  const other = calls.call("add", [3, 4]);
  assert.deepEqual(sent.map(({ number }) => number), [0, 1]);
  const answer = encodeCall({ kind: "answer", number: 0, payload: rabbit.pack(rabbit.u32, 3) });
  say(answer, answer, encodeCall({ kind: "refusal", number: 0, reason: 1, code: 0 }));
  assert.equal(await call, 3);
  assert.equal(calls.stats().unexpected, 4);
  say(encodeCall({ kind: "answer", number: 1, payload: new Uint8Array(0) }));
  await assert.rejects(other, fails("bad-answer", /does not match/));
  const last = calls.call("add", [5, 6]);
  say(encodeCall({ kind: "refusal", number: 2, reason: 200, code: 9 }));
  await assert.rejects(last, fails("refused", /200/));
  say(new Uint8Array(129).fill(127), hex("7f"), hex("7f09"));
  assert.equal(calls.stats().malformed, 3);
});

test("invalid calls, signals, schemas and limits are refused immediately", async () => {
  const { calls, connection } = await hostile({ maxBytes: 128 });
  await assert.rejects(calls.call("gone", []), fails("bad-option", /no gone/));
  await assert.rejects(calls.call("add", ["a", 2]), fails("bad-option", /do not match/));
  await assert.rejects(calls.call("shout", "x".repeat(150)), fails("too-long", /128/));
  await assert.rejects(calls.call("add", [1, 2], { timeoutMs: -1 }), fails("bad-option", /timeoutMs/));
  await assert.rejects(calls.call("add", [1, 2], { signal: AbortSignal.abort(new Error("enough")) }), /enough/);
  await assert.rejects(calls.call("add", [1, 2], { channel: 40 }), fails("bad-option", /channel/));
  assert.throws(() => calls.signal("said", "x".repeat(99) + "yyy"), fails("bad-option", /do not match/));
  assert.equal(calls.openCalls, 0);
  assert.throws(() => new RemoteCalls(connection, SCHEMA), fails("bad-option", /another plugin/));
  const other = (await openFake("raknet")).connection;
  assert.throws(() => new RemoteCalls(other, { signals: { "": rabbit.u8 } }), fails("bad-option", /1 to 64/));
  assert.throws(() => new RemoteCalls(other, { functions: { ["é".repeat(33)]: SCHEMA.functions.add } }), fails("bad-option", /1 to 64/));
  assert.throws(() => new RemoteCalls(other, SCHEMA, { maxCalls: 0 }), fails("bad-option", /maxCalls/));
  assert.throws(() => new FunctionError(256), fails("bad-option", /0 to 255/));
});
