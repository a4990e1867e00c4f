// The features that only RakNet has, in Node, through a real relay, with real servers.

import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { setTimeout as sleep } from "node:timers/promises";
import { test } from "node:test";
import { WebSocket } from "ws";

import { FIRST_ALLOWED_ID, FIRST_FREE_ID, ping } from "rakwire";

import { connectTo, echoFixture, RAKNET } from "./protocols.mjs";
import { fails, hasFullQueue, next, nextNumbers, numbered, pattern, startCpp, startEcho, startRelay, until } from "./support.mjs";

/** The largest error of a clock estimate: half a round trip, which is long on a busy machine. */
const CLOCK_MS = 60_000;

test("a message of 1 MB passes in both directions", async (t) => {
  const { open } = await echoFixture(t, RAKNET);
  const connection = await open({ protocolVersion: 11 });
  connection.send(pattern(1_000_000));
  assert.ok(Buffer.from((await next(connection)).bytes).equals(pattern(1_000_000)));
  await connection.close();
});

test("the server's GUID equals that of its pong, and its addresses are known until the connection is closed", async (t) => {
  const { open, relay } = await echoFixture(t, RAKNET);
  const connection = await open();
  const { guid } = await ping(`ws://${relay.address}/ws`, { target: "game", webSocket: WebSocket });
  assert.equal(connection.serverGuid, guid);
  const [address, ...others] = connection.internalAddresses();
  assert.match(address, /^127\.0\.0\.1:\d+$/);
  assert.deepEqual(others, []);
  await connection.close();
  assert.equal(connection.serverGuid, undefined);
  assert.deepEqual(connection.internalAddresses(), []);
});

test("the clock of the server and the rates of the last second are measured", async (t) => {
  const { open } = await echoFixture(t, RAKNET);
  const connection = await open();
  // The rates are those of the last full second, so they are available in the second after it.
  for (;;) {
    connection.send(pattern(1000));
    assert.deepEqual((await next(connection)).bytes, pattern(1000));
    const { bytesSentLastSecond, bytesReceivedLastSecond, clockDifferenceMs } = connection.stats();
    if (bytesSentLastSecond > 1000 && bytesReceivedLastSecond > 1000 && clockDifferenceMs !== undefined) break;
    await sleep(10);
  }
  const { clockDifferenceMs, lossLastSecond } = connection.stats();
  // Late datagrams count as lost.
  assert.ok(lossLastSecond >= 0 && lossLastSecond < 1, `${lossLastSecond}`);
  // The server's clock started at one second, while this process was already running.
  const clockOfServer = performance.now() + clockDifferenceMs;
  assert.ok(clockOfServer > 1000 - CLOCK_MS && clockOfServer < performance.now() + CLOCK_MS, `${clockOfServer}`);
  await connection.close();
});

test("a C++ server echoes short and long messages in order", async (t) => {
  const cpp = await startCpp(t);
  const relay = await startRelay(t, { cpp: cpp.address });
  const connection = await connectTo(relay, RAKNET, { target: "cpp" });
  const lengths = [1, 150_000, 2, 300, 120_000, 3];
  for (const length of lengths) {
    connection.send(pattern(length));
  }
  for (const length of lengths) {
    assert.ok(Buffer.from((await next(connection)).bytes).equals(pattern(length)), `${length} bytes`);
  }
  assert.equal((await connection.close()).code, "local");
});

test("messages with RakNet's ids are rejected, and messages with all other ids pass in both directions", async (t) => {
  const { open } = await echoFixture(t, RAKNET);
  const connection = await open();
  assert.deepEqual([FIRST_ALLOWED_ID, FIRST_FREE_ID], [0x1b, 0x86]);
  for (let id = 0; id < FIRST_ALLOWED_ID; id++) {
    assert.throws(() => connection.send(Uint8Array.of(id)), fails("reserved-id", /RakNet/), `id ${id}`);
  }
  // `rakwire echo` only echoes ids that are free for applications.
  for (let id = FIRST_FREE_ID; id <= 0xff; id++) {
    connection.send(Uint8Array.of(id));
  }
  for (let id = FIRST_FREE_ID; id <= 0xff; id++) {
    assert.deepEqual((await next(connection)).bytes, Uint8Array.of(id));
  }
  connection.send(Uint8Array.of(FIRST_ALLOWED_ID));
  assert.equal((await connection.close()).code, "local");
});

test("a receipt resolves with the outcome of a message, and fails for a message that cannot be sent", async (t) => {
  const { open, echo } = await echoFixture(t, RAKNET);
  const connection = await open({ silenceTimeoutMs: 60_000 });
  const outcomes = ["reliable", "reliable-ordered"].map((reliability) =>
    connection.sendWithReceipt(pattern(50), { reliability }),
  );
  outcomes.push(connection.sendWithReceipt(pattern(300_000)));
  assert.deepEqual(await Promise.all(outcomes), Array(3).fill("acknowledged"));
  // Receipts are local to the sender: the server receives and echoes reliabilities without receipt.
  const echoed = [await next(connection), await next(connection), await next(connection)];
  assert.deepEqual(echoed.map(({ reliability }) => reliability).sort(), ["reliable", "reliable-ordered", "reliable-ordered"]);
  // An unreliable message may be lost.
  let outcome;
  do {
    outcome = await connection.sendWithReceipt(pattern(50), { reliability: "unreliable" });
    assert.ok(["acknowledged", "lost"].includes(outcome), outcome);
  } while (outcome === "lost");
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

test("a receipt does not wait for messages to be read", async (t) => {
  const { open } = await echoFixture(t, RAKNET);
  const connection = await open();
  for (let sent = 0; sent < RAKNET.burst; sent++) {
    connection.send(numbered(sent));
  }
  await until(() => hasFullQueue(connection), "the receive queue is full");
  assert.ok(connection.stats().messagesReceived < 300);
  assert.equal(await connection.sendWithReceipt(pattern(3)), "acknowledged");
  const numbers = await nextNumbers(connection, RAKNET.burst);
  assert.deepEqual(numbers, Array.from({ length: RAKNET.burst }, (_, index) => index));
  await connection.close();
});

test("a signal cancels the wait for a receipt, and prevents sending if it is already aborted", async (t) => {
  const { open, echo } = await echoFixture(t, RAKNET);
  const connection = await open();
  const reason = new Error("enough");
  const aborted = connection.sendWithReceipt(pattern(1), { signal: AbortSignal.abort(reason) });
  await assert.rejects(aborted, reason);
  assert.equal(connection.stats().messagesSent, 0);
  echo.stop();
  const controller = new AbortController();
  const pending = connection.sendWithReceipt(pattern(1), { signal: controller.signal });
  assert.equal(connection.stats().messagesSent, 1);
  controller.abort(reason);
  await assert.rejects(pending, reason);
  connection.close();
});

test("a server with a password admits only clients that send it, and the client refuses invalid passwords", async (t) => {
  const echo = await startEcho(t, "--password", "gehe1m-ß");
  const relay = await startRelay(t, { game: echo.address });
  const open = (options) => connectTo(relay, RAKNET, options);
  for (const password of ["gehe1m-ß", new TextEncoder().encode("gehe1m-ß")]) {
    const connection = await open({ password });
    connection.send(pattern(9));
    assert.deepEqual((await next(connection)).bytes, pattern(9));
    await connection.close();
  }
  for (const password of ["geheim", "", undefined]) {
    await assert.rejects(open({ password }), fails("invalid-password", /password/));
  }
  for (const password of ["x".repeat(256), "ß".repeat(128), 7]) {
    await assert.rejects(open({ password }), fails("bad-option", /255 bytes/));
  }
  const little = { password: "x".repeat(255), memory: { blocks: 4, blockSize: 32 } };
  await assert.rejects(open(little), fails("no-memory", /memory/));
});

test("large messages report progress in both directions", async (t) => {
  const { open } = await echoFixture(t, RAKNET);
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
      assert.ok(index === 0 || progress.done > list[index - 1].done, "progress must increase");
    }
    assert.ok(list.at(-1).done + 10 > parts, `${list.at(-1).done} of ${parts} at the end of ${direction}`);
  }
  await connection.close();
});

/** A server that always reports this protocol version. Returns its address. */
async function startIncompatible(context, version) {
  const socket = createSocket("udp4");
  context.after(() => socket.close());
  socket.on("message", (request, { port, address }) => {
    const magic = request.subarray(1, 17);
    socket.send(Buffer.concat([Buffer.of(0x19, version), magic, Buffer.alloc(8, 1)]), port, address);
  });
  await new Promise((resolve) => socket.bind(0, "127.0.0.1", resolve));
  return `127.0.0.1:${socket.address().port}`;
}

test("a client retries with the version that the server reports, and errors name the cause", async (t) => {
  const cpp = await startCpp(t);
  const stubborn = await startIncompatible(t, 7);
  const relay = await startRelay(t, { game: cpp.address, stubborn, gone: "127.0.0.1:9" });
  const open = (options) => connectTo(relay, RAKNET, options);
  // A server that reports its version gets another request with that version.
  assert.equal((await (await open({ protocolVersion: 11 })).close()).code, "local");
  await assert.rejects(open({ target: "stubborn" }), fails("incompatible-protocol", /version 7/));
  await assert.rejects(open({ target: "gone" }), fails("server-unreachable", /./));
});
