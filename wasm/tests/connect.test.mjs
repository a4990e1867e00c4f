// The package in Node, through a real relay, with real servers.

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { test } from "node:test";
import { WebSocket } from "ws";

import { connect, FIRST_ALLOWED_ID, FIRST_FREE_ID, RakwireError } from "rakwire";

import { pattern, startCpp, startEcho, startRelay } from "./support.mjs";

const fails = (code, expected) => (error) => {
  assert.ok(error instanceof RakwireError, String(error));
  assert.equal(error.code, code);
  assert.match(error.message, expected);
  return true;
};

async function echoFixture(t) {
  const echo = await startEcho(t);
  const relay = await startRelay(t, { game: echo.address });
  const open = (options) => connect(`ws://${relay.address}/ws`, { target: "game", webSocket: WebSocket, ...options });
  return { echo, relay, open };
}

async function next(connection) {
  const { value, done } = await connection.messages().next();
  assert.ok(!done, "the connection ended");
  return value;
}

test("messages are echoed unchanged", async (t) => {
  const { open } = await echoFixture(t);
  const connection = await open();
  for (const [reliability, channel] of [["reliable-ordered", 5], ["reliable", 0], ["unreliable", 0], ["unreliable-sequenced", 31]]) {
    connection.send(pattern(20), { reliability, channel, priority: "high" });
    const echo = await next(connection);
    assert.deepEqual(echo.bytes, pattern(20));
    assert.equal(echo.reliability, reliability);
    assert.equal(echo.channel, channel);
  }
  const stats = connection.stats();
  assert.equal(stats.messagesSent, 4);
  assert.equal(stats.messagesReceived, 4);
  assert.ok(stats.roundTripMs > 0 && stats.mtu > 1000);
  const info = await connection.close();
  assert.equal(info.code, "local");
  assert.deepEqual(await connection.closed, info);
  assert.throws(() => connection.send(pattern(1)), fails("not-connected", /ended/));
  assert.equal(connection.stats().messagesSent, 4);
});

test("a page can have several connections", async (t) => {
  const { open } = await echoFixture(t);
  const connections = await Promise.all([open(), open(), open()]);
  connections.forEach((connection, index) => connection.send(Uint8Array.of(0xfe, index)));
  for (const [index, connection] of connections.entries()) {
    assert.deepEqual((await next(connection)).bytes, Uint8Array.of(0xfe, index));
  }
  const infos = await Promise.all(connections.map((connection) => connection.close()));
  assert.deepEqual(infos.map(({ code }) => code), ["local", "local", "local"]);
});

test("a message of 1 MB passes in both directions", async (t) => {
  const { open } = await echoFixture(t);
  const connection = await open({ protocolVersion: 11 });
  connection.send(pattern(1_000_000));
  assert.ok(Buffer.from((await next(connection)).bytes).equals(pattern(1_000_000)));
  await connection.close();
});

test("a C++ server echoes short and long messages in order", async (t) => {
  const cpp = await startCpp(t);
  const relay = await startRelay(t, { cpp: cpp.address });
  const connection = await connect(`ws://${relay.address}/ws`, { target: "cpp", webSocket: WebSocket });
  const lengths = [1, 150_000, 2, 300, 120_000, 3];
  for (const length of lengths) {
    connection.send(pattern(length));
  }
  for (const length of lengths) {
    assert.ok(Buffer.from((await next(connection)).bytes).equals(pattern(length)), `${length} bytes`);
  }
  assert.equal((await connection.close()).code, "local");
});

test("listeners get messages and the close event", async (t) => {
  const { open, relay } = await echoFixture(t);
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

test("a slow reader loses nothing, and its queue is bounded", async (t) => {
  const { open } = await echoFixture(t);
  const connection = await open();
  const total = 3000;
  for (let sent = 0; sent < total; sent++) {
    connection.send(Uint8Array.of(0xfe, sent >> 8, sent & 0xff));
  }
  await sleep(500);
  const { messagesReceived } = connection.stats();
  assert.ok(messagesReceived >= 256 && messagesReceived < 300, `${messagesReceived} queued without a reader`);
  let expected = 0;
  for await (const { bytes } of connection) {
    assert.equal((bytes[1] << 8) | bytes[2], expected++);
    if (expected === total) {
      break;
    }
  }
  await connection.close();
});

test("closing waits for sent messages, not for a reader", async (t) => {
  const { open } = await echoFixture(t);
  const connection = await open();
  for (let index = 0; index < 1000; index++) {
    connection.send(pattern(1000));
  }
  const info = await connection.close();
  assert.equal(info.code, "local");
  assert.ok(connection.stats().messagesSent === 1000);
  assert.deepEqual(await connection.messages().next(), { done: true, value: undefined });
});

test("sending too fast fails with queue-full", async (t) => {
  const { open } = await echoFixture(t);
  const connection = await open();
  assert.throws(() => {
    for (;;) {
      connection.send(pattern(100_000));
    }
  }, fails("queue-full", /later/));
  assert.throws(() => connection.send(pattern(10_000_000)), fails("too-long", /larger/));
  assert.throws(() => connection.send(new Uint8Array(0)), fails("empty-message", /one byte/));
  assert.throws(() => connection.send(Uint8Array.of(0x15)), fails("reserved-id", /RakNet/));
  assert.throws(() => connection.send("text"), fails("bad-option", /Uint8Array/));
  const closing = connection.close();
  assert.equal((await closing).code, "local");
});

test("ids of RakNet are rejected, and all others pass in both directions", async (t) => {
  const { open } = await echoFixture(t);
  const connection = await open();
  assert.deepEqual([FIRST_ALLOWED_ID, FIRST_FREE_ID], [0x1b, 0x86]);
  for (let id = 0; id < FIRST_ALLOWED_ID; id++) {
    assert.throws(() => connection.send(Uint8Array.of(id)), fails("reserved-id", /RakNet/), `id ${id}`);
  }
  // `rakwire echo` echoes only ids that are free for applications.
  for (let id = FIRST_FREE_ID; id <= 0xff; id++) {
    connection.send(Uint8Array.of(id));
  }
  for (let id = FIRST_FREE_ID; id <= 0xff; id++) {
    assert.deepEqual((await next(connection)).bytes, Uint8Array.of(id));
  }
  connection.send(Uint8Array.of(FIRST_ALLOWED_ID));
  assert.equal((await connection.close()).code, "local");
});

test("a receipt resolves with the outcome of a message", async (t) => {
  const { open, echo } = await echoFixture(t);
  const connection = await open();
  const outcomes = ["unreliable", "reliable", "reliable-ordered"].map((reliability) =>
    connection.sendWithReceipt(pattern(50), { reliability }),
  );
  outcomes.push(connection.sendWithReceipt(pattern(300_000)));
  assert.deepEqual(await Promise.all(outcomes), Array(4).fill("acknowledged"));
  // Receipts are local to the sender: the server sees and echoes reliabilities without receipt.
  const echoed = [await next(connection), await next(connection), await next(connection)];
  assert.deepEqual(echoed.map(({ reliability }) => reliability).sort(), ["reliable", "reliable-ordered", "unreliable"]);
  await assert.rejects(connection.sendWithReceipt(new Uint8Array(0)), fails("empty-message", /one byte/));
  await assert.rejects(
    connection.sendWithReceipt(pattern(1), { reliability: "reliable-sequenced" }),
    fails("bad-option", /no receipts/),
  );
  echo.stop();
  const pending = [
    connection.sendWithReceipt(pattern(1), { reliability: "unreliable" }),
    connection.sendWithReceipt(pattern(1)),
  ];
  assert.equal(await pending[0], "lost");
  connection.close();
  assert.equal(await pending[1], "unknown");
  await assert.rejects(connection.sendWithReceipt(pattern(1)), fails("not-connected", /ended/));
});

test("a receipt does not wait for a reader of messages", async (t) => {
  const { open } = await echoFixture(t);
  const connection = await open();
  const total = 3000;
  for (let sent = 0; sent < total; sent++) {
    connection.send(Uint8Array.of(0xfe, sent >> 8, sent & 0xff));
  }
  await sleep(500);
  assert.ok(connection.stats().messagesReceived < 300);
  assert.equal(await connection.sendWithReceipt(pattern(3)), "acknowledged");
  let expected = 0;
  for await (const { bytes } of connection) {
    assert.equal((bytes[1] << 8) | bytes[2], expected++);
    if (expected === total) {
      break;
    }
  }
  await connection.close();
});

test("large messages report progress in both directions", async (t) => {
  const { open } = await echoFixture(t);
  await assert.rejects(open({ progressInterval: -1 }), fails("bad-option", /progressInterval/));
  const connection = await open({ progressInterval: 10 });
  const received = { sending: [], receiving: [] };
  connection.addEventListener("progress", ({ progress }) => received[progress.direction].push(progress));
  connection.send(pattern(300_000));
  assert.equal((await next(connection)).bytes.length, 300_000);
  for (const [direction, list] of Object.entries(received)) {
    assert.ok(list.length > 0, direction);
    const [{ parts, message }] = list;
    assert.ok(parts >= 300_000 / 1464 && parts < 600, `${parts} parts`);
    for (const [index, progress] of list.entries()) {
      assert.deepEqual({ ...progress, done: 0 }, { direction, message, parts, done: 0 });
      assert.ok(progress.done % 10 === 0 && progress.done <= parts);
      assert.ok(index === 0 || progress.done > list[index - 1].done, "progress only grows");
    }
    assert.ok(list.at(-1).done + 10 > parts, `${list.at(-1).done} of ${parts} at the end of ${direction}`);
  }
  await connection.close();
});

test("errors name the cause", async (t) => {
  const cpp = await startCpp(t);
  const relay = await startRelay(t, { game: cpp.address, gone: "127.0.0.1:9" });
  const open = (options) => connect(`ws://${relay.address}/ws`, { webSocket: WebSocket, ...options });
  await assert.rejects(open({ target: "missing" }), fails("relay-closed", /unknown target 'missing'.*game, gone.*4404/));
  await assert.rejects(open({ target: "game", protocolVersion: 11 }), fails("incompatible-protocol", /version 6/));
  await assert.rejects(open({ target: "gone" }), fails("no-answer", /does not answer/));
  await assert.rejects(open({ target: "gone", timeoutMs: 200 }), fails("timeout", /200 ms/));
  await assert.rejects(open({ target: "gone", protocolVersion: 256 }), fails("bad-option", /255/));
  await assert.rejects(open({ target: "gone", timeoutMs: -1 }), fails("bad-option", /timeoutMs/));
  relay.stop();
  await assert.rejects(open({ target: "game" }), fails("relay-unreachable", /cannot be reached/));
});

test("a signal cancels the attempt with its reason", async (t) => {
  const relay = await startRelay(t, { gone: "127.0.0.1:9" });
  const open = (signal) => connect(`ws://${relay.address}/ws`, { target: "gone", webSocket: WebSocket, signal });
  const reason = new Error("enough");
  await assert.rejects(open(AbortSignal.abort(reason)), reason);
  const controller = new AbortController();
  setTimeout(() => controller.abort(reason), 100);
  await assert.rejects(open(controller.signal), reason);
});
