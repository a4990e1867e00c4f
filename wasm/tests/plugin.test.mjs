// Plugins: the delivery of messages with an id that a plugin has claimed.

import assert from "node:assert/strict";
import { test } from "node:test";

import { RemoteCalls } from "rakwire/calls";
import { receiveFiles, sendFiles } from "rakwire/files";
import { attach } from "rakwire/plugin";
import { ReadyEvents } from "rakwire/ready";
import { Replicas } from "rakwire/replication";
import { Voice } from "rakwire/voice";

import { numberOf, openFake, range } from "./fake-peer.mjs";
import { fails } from "./support.mjs";
import { watchWaits } from "./waits.mjs";

const settle = () => new Promise((resolve) => setImmediate(resolve));
/** The numbers of messages with the plugin's id 1. */
const OWN = range(0x101, 0x10a);
const OTHERS = range(0x201, 0x20a);
const mixed = OWN.flatMap((own, index) => [own, OTHERS[index]]);

function collector(ids = [1]) {
  const numbers = [];
  return { numbers, plugin: { ids, onMessage: (message) => numbers.push(numberOf(message)) } };
}

async function takeAll(connection) {
  const numbers = [];
  for await (const message of connection) {
    numbers.push(numberOf(message));
  }
  return numbers;
}

for (const protocol of ["raknet", "game"]) {
  test(`${protocol}: a plugin gets the messages with its ids, and iteration gets all other messages`, async () => {
    const { connection, arrive, end } = await openFake(protocol);
    const { numbers, plugin } = collector();
    attach(connection, plugin);
    await settle();
    arrive(...mixed);
    end();
    assert.deepEqual(await takeAll(connection), OTHERS);
    assert.deepEqual(numbers, OWN);
  });

  test(`${protocol}: a plugin gets messages that arrived before it was attached`, async () => {
    const { connection, arrive, end } = await openFake(protocol);
    const { numbers, plugin } = collector();
    arrive(...mixed.slice(0, 8));
    const arrived = [];
    attach(connection, plugin);
    connection.addEventListener("message", ({ message }) => arrived.push(numberOf(message)));
    connection.onMessage = (message) => arrived.push(numberOf(message));
    // Arrives before the plugin has received its first message.
    arrive(...mixed.slice(8));
    assert.deepEqual(numbers, []);
    await settle();
    assert.deepEqual(numbers, OWN);
    assert.deepEqual(arrived, OTHERS.flatMap((number) => [number, number]));
    end();
  });

  test(`${protocol}: a plugin gets its messages while messages for the application are unread`, async () => {
    const { connection, arrive, end } = await openFake(protocol);
    arrive(...range(0x201, 0x2ff), ...range(0x301, 0x301 + 300), ...OWN);
    const { numbers, plugin } = collector();
    attach(connection, plugin);
    await settle();
    assert.deepEqual(numbers, OWN);
    end();
    assert.deepEqual(await takeAll(connection), [...range(0x201, 0x2ff), ...range(0x301, 0x301 + 300)]);
  });

  test(`${protocol}: two plugins cannot share an id, and detaching a plugin frees its ids`, async () => {
    const { connection, arrive, end } = await openFake(protocol);
    const [first, second] = [collector(), collector([1, 2])];
    const detach = attach(connection, first.plugin);
    assert.throws(() => attach(connection, second.plugin), fails("bad-option", /id 1/));
    await settle();
    arrive(0x101);
    detach();
    attach(connection, second.plugin);
    detach();
    await settle();
    arrive(0x102, 0x202, 0x302);
    assert.deepEqual([first.numbers, second.numbers], [[0x101], [0x102, 0x202]]);
    end();
    assert.deepEqual(await takeAll(connection), [0x302]);
  });
}

test("messages for a detached plugin are discarded until another plugin is attached", async () => {
  const { connection, arrive, end } = await openFake("raknet");
  const [first, second] = [collector(), collector()];
  attach(connection, first.plugin)();
  arrive(0x101, 0x201);
  await settle();
  attach(connection, second.plugin);
  await settle();
  arrive(0x102, 0x202);
  end();
  assert.deepEqual(await takeAll(connection), [0x201, 0x202]);
  assert.deepEqual([first.numbers, second.numbers], [[], [0x102]]);
});

test("a plugin that detaches itself during the delivery of queued messages gets no more of these messages", async () => {
  const { connection, arrive } = await openFake("raknet");
  const numbers = [];
  arrive(0x101, 0x102, 0x103);
  const detach = attach(connection, {
    ids: [1],
    onMessage(message) {
      numbers.push(numberOf(message));
      detach();
    },
  });
  await settle();
  assert.deepEqual(numbers, [0x101]);
});

test("without a plugin, messages beyond a full queue stay in WebAssembly memory", async () => {
  const { connection, arrive } = await openFake("raknet");
  const detach = attach(connection, collector().plugin);
  await settle();
  arrive(...range(0x2000, 0x2000 + 299));
  assert.equal(connection.stats().messagesQueued, 300);
  detach();
  arrive(...range(0x2200, 0x2200 + 99));
  assert.equal(connection.stats().messagesQueued, 300);
  attach(connection, collector().plugin);
  await settle();
  assert.equal(connection.stats().messagesQueued, 400);
});

test("an exception of a plugin is reported, and the connection continues", async (t) => {
  const { connection, arrive } = await openFake("raknet");
  const reported = [];
  globalThis.reportError = (error) => reported.push(error);
  t.after(() => delete globalThis.reportError);
  attach(connection, { ids: [1], onMessage: () => { throw new Error("no"); } });
  arrive(0x101, 0x201);
  assert.equal(numberOf(await connection.receive()), 0x201);
  await settle();
  assert.equal(reported.length, 1);
});

test("plugins cannot be attached to objects other than connections", () => {
  assert.throws(() => attach({}, collector().plugin), fails("bad-option", /connection/));
});

const CLASSES = { player: { x: { bits: 16 } } };
/** Parts of the package that attach to a connection. Each returns a function that detaches it. */
const USES = {
  calls(connection) {
    const calls = new RemoteCalls(connection, { functions: {} });
    return () => calls.detach();
  },
  "ready events"(connection) {
    const events = new ReadyEvents();
    events.join(connection);
    return () => events.leave(connection);
  },
  replicas(connection) {
    const replicas = new Replicas({ classes: CLASSES });
    replicas.join(connection);
    return () => replicas.leave();
  },
  voice(connection) {
    const voice = new Voice({ id: 0x90 });
    voice.join(connection);
    return () => voice.leave(connection);
  },
  "file senders"(connection) {
    const controller = new AbortController();
    sendFiles(connection, [], { signal: controller.signal }).catch(() => undefined);
    return () => controller.abort();
  },
  "file receivers"(connection) {
    const transfer = receiveFiles(connection);
    return () => transfer.cancel();
  },
};

for (const [name, use] of Object.entries(USES)) {
  test(`a connection keeps no reference to detached ${name}`, async (t) => {
    const { connection, end } = await openFake("raknet");
    const left = watchWaits(t, connection);
    let most = 0;
    for (let round = 0; round < 20; round++) {
      const leave = use(connection);
      await settle();
      most = Math.max(most, left());
      leave();
      await settle();
    }
    assert.equal(left(), 0);
    assert.ok(most > 0, "an attached plugin must wait for the close of the connection");
    end();
  });
}

test("replicas that joined another connection ignore the close event of the previous one", async () => {
  const [first, second] = [await openFake("raknet"), await openFake("raknet")];
  const replicas = new Replicas({ classes: CLASSES });
  replicas.join(first.connection);
  first.end();
  replicas.leave();
  replicas.join(second.connection);
  await settle();
  assert.throws(() => replicas.join(first.connection), fails("bad-option", /another connection/));
  replicas.leave();
});
