// The package in Node with both protocols, through a real relay, with real servers.

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { test } from "node:test";

import { connectTo, echoFixture, PROTOCOLS } from "./protocols.mjs";
import { fails, next, nextNumbers, numbered, pattern, startRelay } from "./support.mjs";

for (const protocol of PROTOCOLS) {
  test(`${protocol.name}: messages are echoed unchanged`, async (t) => {
    const { open } = await echoFixture(t, protocol);
    const connection = await open();
    for (const [reliability, channel] of protocol.deliveries) {
      connection.send(pattern(20), { ...(reliability && { reliability }), channel, priority: "high" });
      const echo = await next(connection);
      assert.deepEqual(echo.bytes, pattern(20));
      assert.equal(echo.reliability, reliability ?? protocol.defaultReliability);
      assert.equal(echo.channel, channel);
    }
    const stats = connection.stats();
    assert.equal(stats.messagesSent, protocol.deliveries.length);
    assert.equal(stats.messagesReceived, protocol.deliveries.length);
    assert.ok(stats.roundTripMs > 0 && stats.mtu > 500);
    const info = await connection.close();
    assert.equal(info.code, "local");
    assert.deepEqual(await connection.closed, info);
    assert.throws(() => connection.send(pattern(1)), fails("not-connected", /ended/));
    assert.equal(connection.stats().messagesSent, protocol.deliveries.length);
  });

  test(`${protocol.name}: a page can have several connections`, async (t) => {
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
    const connection = await open();
    const messages = [];
    connection.send(Uint8Array.of(0xfe, 1));
    await sleep(100);
    connection.addEventListener("message", ({ message }) => messages.push(message.bytes[1]));
    connection.send(Uint8Array.of(0xfe, 2));
    await sleep(100);
    assert.deepEqual(messages, [1, 2]);
    const closed = new Promise((resolve) => connection.addEventListener("close", ({ info }) => resolve(info)));
    relay.stop();
    const info = await closed;
    assert.equal(info.code, "relay-closed");
    assert.equal(info.relayCode, 1006);
    assert.match(info.reason, /connection to the relay lost/);
  });

  test(`${protocol.name}: a slow reader loses nothing, and its queue is bounded`, async (t) => {
    const { open } = await echoFixture(t, protocol);
    const connection = await open();
    for (let sent = 0; sent < protocol.burst; sent++) {
      connection.send(numbered(sent));
    }
    await sleep(500);
    const { messagesReceived } = connection.stats();
    assert.ok(messagesReceived >= 256 && messagesReceived < 300, `${messagesReceived} queued without a reader`);
    const numbers = await nextNumbers(connection, protocol.burst);
    // The Game Protocol keeps no order.
    const ordered = protocol.defaultReliability === "reliable-ordered" ? numbers : numbers.sort((a, b) => a - b);
    assert.deepEqual(ordered, Array.from({ length: protocol.burst }, (_, index) => index));
    await connection.close();
  });

  test(`${protocol.name}: closing waits for sent messages, not for a reader`, async (t) => {
    const { open } = await echoFixture(t, protocol);
    const connection = await open();
    for (let index = 0; index < 1000; index++) {
      connection.send(pattern(protocol.short));
    }
    const info = await connection.close();
    assert.equal(info.code, "local");
    const stats = connection.stats();
    assert.equal(stats.messagesSent, 1000);
    assert.equal(stats.inFlight, 0);
    assert.deepEqual(await connection.messages().next(), { done: true, value: undefined });
  });

  test(`${protocol.name}: sending too fast fails with queue-full`, async (t) => {
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

  test(`${protocol.name}: errors name the cause`, async (t) => {
    const relay = await startRelay(t, { game: "127.0.0.1:9", gone: "127.0.0.1:9" });
    const open = (options) => connectTo(relay, protocol, options);
    await assert.rejects(open({ target: "missing" }), fails("relay-closed", /unknown target 'missing'.*game, gone.*4404/));
    await assert.rejects(open({ target: "gone", timeoutMs: 200 }), fails("timeout", /200 ms/));
    await assert.rejects(open({ target: "gone", protocolVersion: 256 }), fails("bad-option", /255/));
    await assert.rejects(open({ target: "gone", timeoutMs: -1 }), fails("bad-option", /timeoutMs/));
    await assert.rejects(open({ progressInterval: -1 }), fails("bad-option", /progressInterval/));
    relay.stop();
    await assert.rejects(open({ target: "game" }), fails("relay-unreachable", /cannot be reached/));
  });

  test(`${protocol.name}: a signal cancels the attempt with its reason`, async (t) => {
    const relay = await startRelay(t, { gone: "127.0.0.1:9" });
    const open = (signal) => connectTo(relay, protocol, { target: "gone", signal });
    const reason = new Error("enough");
    await assert.rejects(open(AbortSignal.abort(reason)), reason);
    const controller = new AbortController();
    setTimeout(() => controller.abort(reason), 100);
    await assert.rejects(open(controller.signal), reason);
  });
}

test("an unknown protocol is rejected", async () => {
  const wrong = connectTo({ address: "127.0.0.1:9" }, { options: { protocol: "gam" } });
  await assert.rejects(wrong, fails("bad-option", /raknet or game/));
});
