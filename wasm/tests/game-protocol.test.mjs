// The features that only the Game Protocol has, in Node, through a real relay, with a real server.

import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { test } from "node:test";

import { connectTo, echoFixture, GAME_PROTOCOL } from "./protocols.mjs";
import { codeOf, echoOf, fails, pattern, startRelay } from "./support.mjs";

test("messages of valid lengths are echoed unchanged, and other lengths and reliabilities are refused", async (t) => {
  const { open } = await echoFixture(t, GAME_PROTOCOL);
  const connection = await open();
  let messagesSent = 0;
  for (const [length, reliability] of [[1, undefined], [20, "unreliable"], [505, "reliable"], [129_024, "reliable"]]) {
    const { bytes, reliability: echoed, sent } = await echoOf(connection, pattern(length), reliability && { reliability });
    messagesSent += sent;
    assert.deepEqual(bytes, pattern(length));
    assert.equal(echoed, reliability ?? "reliable");
  }
  for (const reliability of ["reliable-ordered", "unreliable-sequenced"]) {
    assert.equal(codeOf(() => connection.send(pattern(1), { reliability })), "bad-option");
  }
  assert.equal(codeOf(() => connection.send(new Uint8Array(0))), "empty-message");
  assert.equal(codeOf(() => connection.send(pattern(129_025))), "too-long");
  const stats = connection.stats();
  assert.equal(stats.messagesSent, messagesSent);
  assert.ok(stats.messagesReceived >= 4 && stats.messagesReceived <= messagesSent);
  assert.equal(stats.mtu, 536);
  assert.equal((await connection.close()).code, "local");
});

test("a password is refused, because the Game Protocol has none", async () => {
  const relay = { address: "127.0.0.1:9" };
  await assert.rejects(connectTo(relay, GAME_PROTOCOL, { password: "x" }), fails("bad-option", /has no password/));
});

test("a client repeats an unanswered connection request from another port of the relay", async (t) => {
  const silent = createSocket("udp4");
  t.after(() => silent.close());
  await new Promise((resolve) => silent.bind(0, "127.0.0.1", resolve));
  const relay = await startRelay(t, { game: `127.0.0.1:${silent.address().port}` });
  const ports = new Set();
  const received = new Promise((resolve) => {
    silent.on("message", (datagram, { port }) => {
      assert.equal(datagram.length, 4);
      assert.ok(!ports.has(port), "each request must come from another port");
      ports.add(port);
      if (ports.size === 2) {
        resolve();
      }
    });
  });
  const controller = new AbortController();
  const reason = new Error("enough");
  const failure = assert.rejects(connectTo(relay, GAME_PROTOCOL, { signal: controller.signal }), reason);
  await received;
  controller.abort(reason);
  await failure;
});
