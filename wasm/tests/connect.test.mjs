// The package in Node with both protocols, through a real relay, with real servers.

import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { test } from "node:test";

import { connectTo, echoFixture, PROTOCOLS } from "./protocols.mjs";
import { echoOf, fails, hasFullQueue, LIMIT_MS, next, nextNumbers, numbered, pattern, startRelay, until } from "./support.mjs";

for (const protocol of PROTOCOLS) {
  test(`${protocol.name}: messages are echoed unchanged and counted, and sending after the close fails`, async (t) => {
    const { open } = await echoFixture(t, protocol);
    const connection = await open();
    let messagesSent = 0;
    for (const [index, [reliability, channel]] of protocol.deliveries.entries()) {
      const bytes = pattern(20 + index);
      const echo = await echoOf(connection, bytes, { ...(reliability && { reliability }), channel, priority: "high" });
      assert.deepEqual(echo.bytes, bytes);
      assert.equal(echo.reliability, reliability ?? protocol.defaultReliability);
      assert.equal(echo.channel, channel);
      messagesSent += echo.sent;
    }
    const stats = connection.stats();
    assert.equal(stats.messagesSent, messagesSent);
    assert.ok(stats.messagesReceived >= protocol.deliveries.length && stats.messagesReceived <= messagesSent);
    assert.ok(stats.roundTripMs > 0 && stats.mtu > 500);
    const info = await connection.close();
    assert.equal(info.code, "local");
    assert.deepEqual(await connection.closed, info);
    assert.throws(() => connection.send(pattern(1)), fails("not-connected", /ended/));
    assert.equal(connection.stats().messagesSent, messagesSent);
  });

  test(`${protocol.name}: several connections to one relay are open at the same time`, async (t) => {
    const { open } = await echoFixture(t, protocol);
    const connections = await Promise.all([open(), open(), open()]);
    connections.forEach((connection, index) => connection.send(Uint8Array.of(0xfe, index)));
    for (const [index, connection] of connections.entries()) {
      assert.deepEqual((await next(connection)).bytes, Uint8Array.of(0xfe, index));
    }
    const infos = await Promise.all(connections.map((connection) => connection.close()));
    assert.deepEqual(infos.map(({ code }) => code), ["local", "local", "local"]);
  });

  test(`${protocol.name}: listeners get messages and the close event`, async (t) => {
    const { open, relay } = await echoFixture(t, protocol);
    const connection = await open({ resume: false });
    const messages = [];
    connection.send(Uint8Array.of(0xfe, 1));
    await until(() => connection.stats().messagesQueued === 1, "a message is queued");
    connection.addEventListener("message", ({ message }) => messages.push(message.bytes[1]));
    connection.send(Uint8Array.of(0xfe, 2));
    await until(() => messages.length === 2, "the listener has received both messages");
    assert.deepEqual(messages, [1, 2]);
    const closed = new Promise((resolve) => connection.addEventListener("close", ({ info }) => resolve(info)));
    relay.stop();
    const info = await closed;
    assert.equal(info.code, "relay-closed");
    assert.equal(info.relayCode, 1006);
    assert.match(info.reason, /connection to the relay lost/);
  });

  test(`${protocol.name}: a slow reader loses no message, and its receive queue is bounded`, async (t) => {
    const { open } = await echoFixture(t, protocol);
    const connection = await open();
    for (let sent = 0; sent < protocol.burst; sent++) {
      connection.send(numbered(sent));
    }
    await until(() => hasFullQueue(connection), "the receive queue is full");
    const { messagesReceived } = connection.stats();
    assert.ok(messagesReceived < 300, `${messagesReceived} queued without a reader`);
    const numbers = await nextNumbers(connection, protocol.burst);
    // The Game Protocol does not preserve the order.
    const ordered = protocol.defaultReliability === "reliable-ordered" ? numbers : numbers.sort((a, b) => a - b);
    assert.deepEqual(ordered, Array.from({ length: protocol.burst }, (_, index) => index));
    await connection.close();
  });

  test(`${protocol.name}: closing waits for acknowledgements of sent messages, but not until received messages are read`, async (t) => {
    const { open } = await echoFixture(t, protocol);
    let inFlight;
    // The Game Protocol waits at most one second for acknowledgements, and a busy machine may take longer. The test
    // then tries again.
    for (let attempt = 0; attempt < 5 && inFlight !== 0; attempt++) {
      const connection = await open();
      for (let index = 0; index < 1000; index++) {
        connection.send(pattern(protocol.short));
      }
      assert.equal((await connection.close()).code, "local");
      const stats = connection.stats();
      assert.equal(stats.messagesSent, 1000);
      assert.deepEqual(await connection.messages().next(), { done: true, value: undefined });
      inFlight = stats.inFlight;
    }
    assert.equal(inFlight, 0);
  });

  test(`${protocol.name}: a full queue and messages that are too long, empty or not bytes fail with distinct codes`, async (t) => {
    const { open } = await echoFixture(t, protocol);
    const connection = await open();
    assert.throws(() => {
      for (;;) {
        connection.send(pattern(100_000));
      }
    }, fails("queue-full", /later/));
    const { bytes, words } = protocol.tooLong;
    assert.throws(() => connection.send(pattern(bytes)), fails("too-long", words));
    assert.throws(() => connection.send(new Uint8Array(0)), fails("empty-message", /one byte/));
    assert.throws(() => connection.send("text"), fails("bad-option", /Uint8Array/));
    const closing = connection.close();
    assert.equal((await closing).code, "local");
  });

  test(`${protocol.name}: connect errors name the cause`, async (t) => {
    const silent = createSocket("udp4");
    t.after(() => silent.close());
    await new Promise((resolve) => silent.bind(0, "127.0.0.1", resolve));
    const relay = await startRelay(t, { game: `127.0.0.1:${silent.address().port}`, gone: "127.0.0.1:9" });
    const open = (options) => connectTo(relay, protocol, options);
    await assert.rejects(open({ target: "missing" }), fails("relay-closed", /unknown target 'missing'.*game, gone.*4404/));
    await assert.rejects(open({ target: "game", timeoutMs: 200 }), fails("timeout", /200 ms/));
    await assert.rejects(open({ target: "gone" }), fails("server-unreachable", /nothing listens on its port.*4502/));
    await assert.rejects(open({ target: "gone", protocolVersion: 256 }), fails("bad-option", /255/));
    await assert.rejects(open({ target: "gone", timeoutMs: -1 }), fails("bad-option", /timeoutMs/));
    await assert.rejects(open({ progressInterval: -1 }), fails("bad-option", /progressInterval/));
    await relay.stop();
    await assert.rejects(open({ target: "game" }), fails("relay-unreachable", /cannot be reached/));
  });

  test(`${protocol.name}: a signal cancels the attempt with its reason`, async (t) => {
    const silent = createSocket("udp4");
    t.after(() => silent.close());
    await new Promise((resolve) => silent.bind(0, "127.0.0.1", resolve));
    const relay = await startRelay(t, { silent: `127.0.0.1:${silent.address().port}` });
    const open = (signal) => connectTo(relay, protocol, { target: "silent", signal });
    const reason = new Error("enough");
    await assert.rejects(open(AbortSignal.abort(reason)), reason);
    const controller = new AbortController();
    silent.once("message", () => controller.abort(reason));
    await assert.rejects(open(controller.signal), reason);
  });

  test(`${protocol.name}: of ten messages, a once listener gets one and iteration the other nine`, async (t) => {
    const { open } = await echoFixture(t, protocol);
    const connection = await open();
    const numbers = [];
    const received = new Promise((resolve) => {
      const listener = ({ message: { bytes } }) => resolve(numbers.push(bytes[2]));
      connection.addEventListener("message", listener, { once: true });
    });
    for (let sent = 0; sent < 10; sent++) {
      connection.send(numbered(sent), { reliability: "reliable" });
    }
    await received;
    numbers.push(...(await nextNumbers(connection, 9)));
    assert.deepEqual(numbers.sort(), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    await connection.close();
  });

  test(`${protocol.name}: messages that arrived before the server left are delivered before the close event`, async (t) => {
    const { open, echo } = await echoFixture(t, protocol);
    const connection = await open();
    for (let sent = 0; sent < 200; sent++) {
      connection.send(numbered(sent), { reliability: "reliable" });
    }
    const first = await connection.receive();
    await until(() => connection.stats().messagesQueued === 199, "the other 199 messages are queued");
    echo.stop("SIGTERM");
    assert.equal((await connection.whenClosed({ signal: AbortSignal.timeout(LIMIT_MS) })).code, "remote");
    const numbers = [first];
    for await (const message of connection) {
      numbers.push(message);
    }
    const seen = numbers.map(({ bytes }) => (bytes[1] << 8) | bytes[2]).sort((a, b) => a - b);
    assert.deepEqual(seen, Array.from({ length: 200 }, (_, index) => index));
    assert.equal(await connection.receive(), undefined);
    assert.equal(connection.stats().messagesDiscarded, 0);
  });

  test(`${protocol.name}: ready resolves when a refused message would be accepted, and fails for an invalid length or a closed connection`, async (t) => {
    const { open } = await echoFixture(t, protocol);
    const connection = await open({ memory: protocol.smallMemory });
    connection.addEventListener("message", () => undefined);
    await connection.ready();
    let accepted = 0;
    let refused = 0;
    while (refused < 5) {
      try {
        connection.send(pattern(protocol.short));
        accepted += 1;
      } catch (error) {
        fails("queue-full", /later/)(error);
        refused += 1;
        await connection.ready();
        connection.send(pattern(protocol.short));
        accepted += 1;
      }
    }
    assert.equal(connection.stats().messagesSent, accepted);
    await assert.rejects(connection.ready({ length: 1_000_000_000 }), fails("too-long", /exceeds|at most/));
    await assert.rejects(connection.ready({ length: 0 }), fails("bad-option", /length/));
    await connection.close();
    await assert.rejects(connection.ready(), fails("not-connected", /ended/));
  });

  test(`${protocol.name}: a signal cancels all waiting calls with its reason, and has no other effect`, async (t) => {
    const { open } = await echoFixture(t, protocol);
    const connection = await open({ memory: protocol.smallMemory });
    const reason = new Error("enough");
    const controller = new AbortController();
    const { signal } = controller;
    assert.throws(() => {
      for (;;) {
        connection.send(pattern(protocol.short));
      }
    }, fails("queue-full", /later/));
    const iterator = connection.messages({ signal });
    const waits = [connection.ready({ signal }), connection.whenClosed({ signal })];
    controller.abort(reason);
    waits.push(connection.receive({ signal }), iterator.next(), connection.ready({ signal }), connection.whenClosed({ signal }));
    for (const wait of waits) {
      await assert.rejects(wait, reason);
    }
    await connection.ready();
    assert.deepEqual((await next(connection)).bytes, pattern(protocol.short));
    await assert.rejects(connection.close({ signal }), reason);
    assert.equal((await connection.closed).code, "local");
  });

  test(`${protocol.name}: an aborted wait consumes no message`, async (t) => {
    const { open } = await echoFixture(t, protocol);
    const connection = await open();
    const controller = new AbortController();
    const waits = [connection.receive({ signal: controller.signal }), connection.messages({ signal: controller.signal }).next()];
    controller.abort();
    for (const wait of waits) {
      await assert.rejects(wait, { name: "AbortError" });
    }
    connection.send(pattern(7));
    assert.deepEqual((await connection.receive()).bytes, pattern(7));
    await connection.close();
  });

  test(`${protocol.name}: a connection is closed when it is disposed of`, async (t) => {
    const { open } = await echoFixture(t, protocol);
    const connection = await open();
    connection.send(pattern(7));
    await connection[Symbol.asyncDispose]();
    assert.equal((await connection.closed).code, "local");
    assert.equal(connection.stats().inFlight, 0);
  });

  test(`${protocol.name}: the memory option limits the length of messages, and invalid values are refused`, async (t) => {
    const { open } = await echoFixture(t, protocol);
    const connection = await open({ memory: { blocks: 64, blockSize: 512 } });
    assert.throws(() => connection.send(pattern(32 * 512 + 1)), fails("too-long", /exceeds/));
    connection.send(pattern(8 * 512));
    assert.deepEqual((await next(connection)).bytes, pattern(8 * 512));
    await connection.close();
    await assert.rejects(open({ memory: { blocks: 65_535, blockSize: 65_535 } }), fails("no-memory", /fewer/));
    for (const memory of [{ blocks: 3 }, { blocks: 65_536 }, { blockSize: 31 }, { blockSize: 65_536 }, { blocks: 4.5 }]) {
      await assert.rejects(open({ memory }), fails("bad-option", /memory\.block/), JSON.stringify(memory));
    }
  });
}

test("an unknown protocol is rejected", async () => {
  const wrong = connectTo({ address: "127.0.0.1:9" }, { options: { protocol: "gam" } });
  await assert.rejects(wrong, fails("bad-option", /raknet or game/));
});

test("a WebSocket that cannot be created is reported as an unreachable relay", async () => {
  class Forbidden {
    constructor() {
      throw new Error("forbidden here");
    }
  }
  const attempt = connectTo({ address: "127.0.0.1:9" }, PROTOCOLS[0], { webSocket: Forbidden });
  await assert.rejects(attempt, fails("relay-unreachable", /127\.0\.0\.1:9 cannot be reached: Error: forbidden here/));
});
