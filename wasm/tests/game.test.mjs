// The Game Protocol in Node, through a real relay, with a real server.

import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { WebSocket } from "ws";

import { connect, RakwireError } from "rakwire";

import { GamePeer, initSync } from "../pkg/rakwire.js";
import { pattern, startEcho, startRelay } from "./support.mjs";

initSync({ module: readFileSync(new URL("../pkg/rakwire_bg.wasm", import.meta.url)) });

const codeOf = (work) => {
  try {
    work();
  } catch (error) {
    return error.code;
  }
  return undefined;
};

async function openTo(t, address, options) {
  const relay = await startRelay(t, { game: address });
  return connect(`ws://${relay.address}/ws`, { target: "game", protocol: "game", webSocket: WebSocket, ...options });
}

test("messages are echoed unchanged, and each is reliable or unreliable", async (t) => {
  const echo = await startEcho(t, "--protocol", "game");
  const connection = await openTo(t, echo.address);
  const messages = connection.messages();
  for (const [length, reliability] of [[1, undefined], [20, "unreliable"], [505, "reliable"], [129_024, "reliable"]]) {
    connection.send(pattern(length), reliability && { reliability });
    const { value } = await messages.next();
    assert.deepEqual(value.bytes, pattern(length));
    assert.equal(value.reliability, reliability ?? "reliable");
  }
  for (const reliability of ["reliable-ordered", "unreliable-sequenced"]) {
    assert.equal(codeOf(() => connection.send(pattern(1), { reliability })), "bad-option");
  }
  assert.equal(codeOf(() => connection.send(new Uint8Array(0))), "empty-message");
  assert.equal(codeOf(() => connection.send(pattern(129_025))), "too-long");
  const stats = connection.stats();
  assert.equal(stats.messagesSent, 4);
  assert.equal(stats.messagesReceived, 4);
  assert.equal(stats.mtu, 536);
  assert.equal((await connection.close()).code, "local");
});

test("a server that did not answer gets the next request from another port", async (t) => {
  const silent = createSocket("udp4");
  t.after(() => silent.close());
  await new Promise((resolve) => silent.bind(0, "127.0.0.1", resolve));
  const ports = new Set();
  const heard = new Promise((resolve) => {
    silent.on("message", (datagram, { port }) => {
      assert.equal(datagram.length, 4);
      assert.ok(!ports.has(port), "no request is repeated from the same port");
      ports.add(port);
      if (ports.size === 2) {
        resolve();
      }
    });
  });
  const failure = openTo(t, `127.0.0.1:${silent.address().port}`, { timeoutMs: 5000 }).catch((error) => error);
  await heard;
  const error = await failure;
  assert.ok(error instanceof RakwireError);
  assert.equal(error.code, "timeout");
});

test("an unknown protocol is rejected", async () => {
  const wrong = connect("ws://127.0.0.1:9/ws", { target: "game", protocol: "gam", webSocket: WebSocket });
  await assert.rejects(wrong, { code: "bad-option" });
});

test("the class has the same methods as `Peer`, and its errors have codes", () => {
  assert.equal(codeOf(() => new GamePeer(new Uint8Array(31))), "bad-entropy");
  const peer = new GamePeer(new Uint8Array(32).fill(7));
  assert.equal(codeOf(() => peer.send(Uint8Array.of(1), 2, 0, 0, 0)), "not-connected");
  assert.equal(codeOf(() => peer.send(Uint8Array.of(1), 3, 0, 0, 0)), "bad-reliability");
  peer.connect(0);
  assert.equal(codeOf(() => peer.connect(0)), "already-connected");
  assert.equal(peer.pollTransmit(0).length, 4);
  assert.equal(peer.pollTransmit(0), undefined);
  peer.handle(Uint8Array.of(1), 0);
  assert.deepEqual(peer.stats().drops, { tooShort: 1 });
  const end = peer.pollTimeout();
  peer.handleTimeout(end);
  assert.deepEqual(peer.pollEvent(), { kind: "failed", code: "no-answer", words: "the server does not answer" });
  assert.equal(peer.isOver, true);
});
