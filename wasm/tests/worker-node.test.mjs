// Connections with their protocol in a worker thread of Node, to a server of the package: flow control and shutdown.

import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { connect } from "rakwire";
import { listen } from "rakwire/server";
import { createWorker } from "rakwire/worker";

import { fails, LIMIT_MS, pattern, until } from "./support.mjs";
import { startUdpWay } from "./way.mjs";
import { startThread } from "./worker-thread.mjs";

const limited = () => ({ signal: AbortSignal.timeout(LIMIT_MS) });

/** Opens a connection with its protocol in a thread. Returns the client's and the server's side. */
async function openBoth(t, options = {}) {
  const server = await listen({ host: "127.0.0.1" });
  t.after(() => server.close());
  const accepted = server.accept(limited());
  const started = startThread(t);
  const worker = createWorker(() => started);
  const client = await connect(`udp://127.0.0.1:${server.address.port}`, { worker, timeoutMs: LIMIT_MS, ...options });
  return { client, accepted: await accepted, started, worker };
}

async function countAll(connection) {
  let count = 0;
  for await (const _ of connection) {
    count += 1;
  }
  return count;
}

/** Message lengths of which some leave a block too small for the next message. */
const LENGTHS = [1_000, 1_500, 2_000, 2_500];

/** Sends large and small messages until an event reports a changed MTU. */
async function nextMtu(connection) {
  let mtu;
  connection.addEventListener("mtu", (event) => (mtu = event.mtu), { once: true });
  while (mtu === undefined) {
    connection.send(pattern(1_400), { reliability: "reliable" });
    for (let number = 0; number < 10; number++) {
      connection.send(pattern(20), { reliability: "reliable" });
      await sleep(10);
    }
  }
  return mtu;
}

for (const where of ["here", "in a worker"]) {
  test(`a path that drops large datagrams causes an mtu event on both sides, with the client's protocol ${where}`, async (t) => {
    const server = await listen({ host: "127.0.0.1" });
    t.after(() => server.close());
    const way = await startUdpWay(t, server.address.port);
    const worker = where === "here" ? undefined : createWorker(() => startThread(t));
    const client = await connect(`udp://127.0.0.1:${way.port}`, { worker, timeoutMs: LIMIT_MS });
    const accepted = await server.accept(limited());
    way.longest = 1_400;
    assert.deepEqual(await Promise.all([client, accepted].map(nextMtu)), [1_200, 1_200]);
    await until(() => client.stats().mtu === 1_200 && accepted.stats().mtu === 1_200, "both sides report the MTU 1,200 in their statistics");
    way.longest = Infinity;
    await client.close(limited());
  });
}

test("messages that wait for memory are sent before a worker closes its connection", async (t) => {
  for (const length of LENGTHS) {
    const { client, accepted } = await openBoth(t, { memory: { blocks: 256 } });
    const counted = countAll(accepted);
    for (let number = 0; number < 100; number++) {
      client.send(pattern(length));
    }
    const { code } = await client.close(limited());
    assert.equal(code, "local");
    assert.equal(await counted, 100);
  }
});

test("messages with receipts are sent even if they exceed the free memory", async (t) => {
  for (const length of LENGTHS) {
    const { client, accepted } = await openBoth(t, { memory: { blocks: 64 } });
    const counted = countAll(accepted);
    const outcomes = Array.from({ length: 40 }, () => client.sendWithReceipt(pattern(length), limited()));
    assert.deepEqual(new Set(await Promise.all(outcomes)), new Set(["acknowledged"]));
    await client.close(limited());
    assert.equal(await counted, 40);
  }
});

test("a worker delivers only as many messages as the page accepts, also while a receipt is awaited", async (t) => {
  const { client, accepted, started } = await openBoth(t, { outgoingLimit: 20_000 });
  let [messages, outcomes] = [0, 0];
  started.addEventListener("message", ({ data }) => {
    messages += data.type === "messages" ? data.messages.length : 0;
    outcomes += data.type === "outcome" ? 1 : 0;
  });
  const post = started.postMessage;
  started.postMessage = (message, transfer) => message.type === "room" || post(message, transfer);
  void client.sendWithReceipt(pattern(200_000)).catch(() => undefined);
  for (let number = 0; number < 600; number++) {
    accepted.send(pattern(40));
  }
  await until(() => messages >= 256, "the worker has delivered 256 messages");
  await sleep(300);
  assert.deepEqual([messages, outcomes], [256, 0]);
});

test("a worker that is closed delivers earlier messages and stops", async (t) => {
  const { client, accepted, started, worker } = await openBoth(t);
  const counted = countAll(accepted);
  for (let number = 0; number < 20; number++) {
    client.send(pattern(1_000));
  }
  const ended = [];
  started.terminate = () => ended.push("ended");
  await worker.close();
  assert.equal((await client.whenClosed(limited())).code, "local");
  assert.equal(await counted, 20);
  assert.deepEqual(ended, ["ended"]);
  await worker.close();
});

test("a connection in a worker closes even if earlier messages were not accepted", async (t) => {
  const reported = t.mock.fn();
  globalThis.reportError = reported;
  t.after(() => delete globalThis.reportError);
  const { client, accepted, worker } = await openBoth(t, { memory: { blocks: 64 }, outgoingLimit: 20_000 });
  const refused = assert.rejects(
    (async () => {
      for (let number = 0; number < 500; number++) client.send(pattern(2_000));
      await client.sendWithReceipt(pattern(2_000), limited());
    })(),
    fails("not-connected", /open/),
  );
  assert.equal((await client.close(limited())).code, "local");
  await refused;
  assert.equal(reported.mock.callCount(), 0);
  assert.equal((await accepted.whenClosed(limited())).code, "remote");
  await worker.close();
});

test("a worker that hangs while it is closed is terminated with its connections", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const ended = [];
  const silent = Object.assign(new EventTarget(), { postMessage: () => undefined, terminate: () => ended.push("worker") });
  const worker = createWorker(() => silent);
  const owner = { hasRoom: true, onConnected: () => undefined, onEnd: ({ code }) => ended.push(code) };
  worker.open({}, { protocol: "raknet" }, owner);
  const opened = { session: 1, type: "open", longest: 1_000, internalAddresses: [] };
  silent.dispatchEvent(Object.assign(new Event("message"), { data: opened }));
  const closing = worker.close();
  t.mock.timers.tick(14_999);
  assert.deepEqual(ended, []);
  t.mock.timers.tick(1);
  await closing;
  assert.deepEqual(ended, ["worker", "local"], "the close must count as local, so that the application does not reconnect");
});

test("a worker that is silent while a connection is open is terminated with its connections", (t) => {
  t.mock.timers.enable({ apis: ["setInterval"] });
  const ended = [];
  const started = [];
  const start = () => {
    started.push(Object.assign(new EventTarget(), { postMessage: () => undefined, terminate: () => ended.push("worker") }));
    return started.at(-1);
  };
  const worker = createWorker(start);
  const open = () => worker.open({}, { protocol: "raknet" }, { hasRoom: true, onConnected: () => undefined, onEnd: ({ code }) => ended.push(code) });
  const say = (data) => started.at(-1).dispatchEvent(Object.assign(new Event("message"), { data: { session: 1, ...data } }));
  open();
  t.mock.timers.tick(60_000);
  assert.deepEqual(ended, [], "a worker without an open connection must not be terminated for its silence");
  say({ type: "open", longest: 1_000, internalAddresses: [] });
  t.mock.timers.tick(14_000);
  say({ type: "stats", stats: {}, bufferedAmount: 0 });
  t.mock.timers.tick(15_999);
  assert.deepEqual(ended, []);
  t.mock.timers.tick(1);
  assert.deepEqual(ended, ["worker", "worker-unavailable"]);
  open();
  assert.equal(started.length, 2, "the next connection must start another worker");
});

test("a connection that opens when its worker is closed fails", async (t) => {
  const socket = createSocket("udp4");
  t.after(() => socket.close());
  await new Promise((resolve) => socket.bind(0, "127.0.0.1", resolve));
  const worker = createWorker(() => startThread(t));
  const opening = connect(`udp://127.0.0.1:${socket.address().port}`, { worker, timeoutMs: LIMIT_MS });
  const failed = assert.rejects(opening, fails("worker-unavailable", /closed/));
  await new Promise((resolve) => socket.once("message", resolve));
  await worker[Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose")]();
  await failed;
});

test("the URL of the script is revoked once it is loaded", (t) => {
  const revoked = [];
  t.mock.method(URL, "revokeObjectURL", (url) => revoked.push(url));
  const made = [];
  globalThis.Worker = class extends EventTarget {
    constructor(url) {
      super();
      made.push({ url, worker: this });
    }
    postMessage() {}
    terminate() {}
  };
  t.after(() => delete globalThis.Worker);
  const owner = { onEnd: () => undefined };
  createWorker().open({}, { protocol: "raknet" }, owner);
  const [{ url, worker }] = made;
  assert.deepEqual(revoked, []);
  worker.dispatchEvent(Object.assign(new Event("message"), { data: { session: 0 } }));
  assert.deepEqual(revoked, [url]);
});

test("a worker disconnects its connections before it stops with its page", async (t) => {
  const page = new EventTarget();
  const [addEventListener, removeEventListener] = [page.addEventListener.bind(page), page.removeEventListener.bind(page)];
  const globals = { document: {}, addEventListener, removeEventListener };
  Object.assign(globalThis, globals);
  t.after(() => Object.keys(globals).forEach((name) => delete globalThis[name]));
  const server = await listen({ host: "127.0.0.1" });
  t.after(() => server.close());
  const started = startThread(t);
  const worker = createWorker(() => started);
  const open = async () => {
    const accepted = server.accept(limited());
    const client = await connect(`udp://127.0.0.1:${server.address.port}`, { worker, timeoutMs: LIMIT_MS });
    return [client, await accepted];
  };
  const [[first, atFirst], [second, atSecond]] = [await open(), await open()];
  page.dispatchEvent(new Event("pagehide"));
  // A browser process that exits with its last page does not wait for its threads.
  started.terminate();
  const ends = await Promise.all([first, second, atFirst, atSecond].map(({ closed }) => closed));
  assert.deepEqual(ends.map(({ code }) => code), ["page-left", "page-left", "remote", "remote"]);
});
