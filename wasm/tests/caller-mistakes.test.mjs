// Mistakes of callers: each is an error that describes the fix, and none is ignored.

import assert from "node:assert/strict";
import { test } from "node:test";
import { WebSocket } from "ws";

import { connect, discover, ping } from "rakwire";
import { RemoteCalls } from "rakwire/calls";
import { rabbit } from "rakwire/codec";
import { receiveFiles, sendFiles } from "rakwire/files";
import { ReadyEvents } from "rakwire/ready";
import { connections } from "rakwire/reconnect";
import { Replicas } from "rakwire/replication";
import { connect as connectSecure } from "rakwire/secure";
import { listen } from "rakwire/server";
import { createToken } from "rakwire/tokens";
import { openLoudspeaker, openMicrophone, Voice } from "rakwire/voice";

import { openFake } from "./fake-peer.mjs";
import { openWith } from "./package-page.mjs";
import { connectTo, echoFixture, PROTOCOLS } from "./protocols.mjs";
import { fails, startEcho, startRelay } from "./support.mjs";

const URL = "ws://127.0.0.1:9/ws";

test("connect, listen, ping, discover and connections refuse unknown options", async () => {
  const unknown = fails("bad-option", /unknown option timeout; there are .*timeoutMs/);
  const options = { target: "game", timeout: 5_000 };
  await assert.rejects(async () => connect(URL, options), unknown);
  await assert.rejects(async () => connectSecure(URL, { ...options, serverKey: "any" }), unknown);
  await assert.rejects(async () => connect(URL, { target: "game", memory: { size: 1 } }), fails("bad-option", /unknown option size; there are blocks/));
  await assert.rejects(listen({ memory: { size: 1 } }), fails("bad-option", /unknown option size; there are blocks/));
  await assert.rejects(ping(URL, options), unknown);
  await assert.rejects(discover(URL, { targets: ["game"], timeout: 5_000 }), unknown);
  await assert.rejects(listen({ prot: 19_132 }), fails("bad-option", /unknown option prot; there are .*port/));
  assert.throws(() => connections(() => connect(URL), { attempts: 3 }), fails("bad-option", /unknown option attempts; there are .*maxAttempts/));
});

test("every method of a connection and of a server refuses unknown options", async () => {
  const { connection } = await openFake("raknet");
  const bytes = Uint8Array.of(0xfe);
  const refused = (known) => fails("bad-option", new RegExp(`unknown option wrong; there are .*${known}`));
  const wrong = { wrong: undefined };
  assert.throws(() => connection.send(bytes, wrong), refused("reliability"));
  assert.throws(() => connection.send(bytes, { reliability: "reliable", signal: undefined }), fails("bad-option", /unknown option signal/));
  await assert.rejects(connection.sendWithReceipt(bytes, wrong), refused("reliability.*signal"));
  await assert.rejects(connection.ready(wrong), refused("reliability.*signal.*length"));
  assert.throws(() => connection.messages(wrong), refused("signal"));
  assert.throws(() => connection.statistics(wrong), refused("intervalMs"));
  for (const wait of ["receive", "whenClosed", "close"]) {
    await assert.rejects(connection[wait](wrong), refused("signal"), wait);
  }
  await connection.ready({ length: 1, priority: "high", signal: undefined });
  connection.send(bytes, { channel: 1, priority: "high", reliability: "reliable" });
  const server = await listen({ host: "127.0.0.1" });
  await assert.rejects(server.accept(wrong), refused("signal"));
  assert.throws(() => server.broadcast(bytes, wrong), refused("reliability"));
  await assert.rejects(server.close(wrong), refused("signal"));
  assert.equal(server.broadcast(bytes, { except: undefined, reliability: "reliable" }).sent, 0);
  await server.close({ signal: undefined });
});

test("every function of a plugin refuses unknown options", async () => {
  const { connection } = await openFake("raknet");
  const refused = (known) => fails("bad-option", new RegExp(`unknown option wrong; there are .*${known}`));
  const wrong = { wrong: undefined };
  const schema = { functions: { add: { arguments: rabbit.u8, answer: rabbit.u8 } }, signals: { hit: rabbit.u8 } };
  assert.throws(() => new RemoteCalls(connection, schema, wrong), refused("maxCalls"));
  const calls = new RemoteCalls(connection, schema);
  await assert.rejects(calls.call("add", 1, wrong), refused("reliability.*timeoutMs"));
  assert.throws(() => calls.signal("hit", 1, wrong), refused("reliability"));
  await assert.rejects(sendFiles(connection, [], wrong), refused("timeoutMs"));
  await assert.rejects(sendFiles(connection, [], { delivery: wrong }), refused("reliability"));
  assert.throws(() => receiveFiles(connection, wrong), refused("maxFiles"));
  assert.throws(() => receiveFiles(connection, { delivery: wrong }), refused("reliability"));
  await assert.rejects(new ReadyEvents().open(1).whenCompleted(wrong), refused("signal"));
  assert.throws(() => new Replicas({ classes: {}, ...wrong }), refused("maxEntities"));
  assert.throws(() => new Voice({ id: 0x90, ...wrong }), refused("maxDelayMs"));
  const voice = new Voice({ id: 0x90 });
  await assert.rejects(openMicrophone(voice, wrong), refused("isPushToTalk"));
  await assert.rejects(openLoudspeaker(voice, wrong), refused("destination"));
  assert.throws(() => createToken(wrong), refused("userId"));
});

test("the error for an address without a scheme shows the address with a scheme", async () => {
  for (const address of ["127.0.0.1:8080", "localhost:8080", "play.example.org:443/ws", "[::1]:8080"]) {
    await assert.rejects(async () => connect(address, { target: "game" }), (error) => {
      assert.ok(error.message.includes(`ws://${address}`), error.message);
      return fails("bad-option", /no scheme/)(error);
    });
    await assert.rejects(ping(address, { target: "game" }), fails("bad-option", /no scheme/));
  }
});

test("the error for a URL with a user and a password names the option token", async () => {
  const refused = fails("bad-option", /the option token/);
  for (const address of ["ws://player@127.0.0.1:9/ws", "wss://player:secret@play.example.org/ws"]) {
    await assert.rejects(async () => connect(address, { target: "game" }), refused);
    await assert.rejects(ping(address, { target: "game" }), refused);
  }
});

for (const protocol of PROTOCOLS) {
  test(`${protocol.name}: a message with a detached buffer and an empty message fail with different codes`, async (t) => {
    const { open } = await echoFixture(t, protocol);
    const connection = await open();
    const bytes = new Uint8Array(8).fill(0xfe);
    structuredClone(bytes, { transfer: [bytes.buffer] });
    assert.throws(() => connection.send(bytes), fails("bad-option", /detached/));
    const receipt = protocol.name === "RakNet" ? /detached/ : /no receipts/;
    await assert.rejects(connection.sendWithReceipt(bytes), fails("bad-option", receipt));
    assert.throws(() => connection.send(new Uint8Array(0)), fails("empty-message", /./));
    await connection.close();
  });

  test(`${protocol.name}: a relay refuses a client of the other protocol with a specific error`, async (t) => {
    const [server, other] = [...PROTOCOLS].sort((one) => (one === protocol ? -1 : 1));
    const echo = await startEcho(t, ...server.echo);
    const kind = server.name === "RakNet" ? "raknet" : "game-protocol";
    const relay = await startRelay(t, { game: `${echo.address},kind=${kind}` });
    const refused = fails("incompatible-protocol", new RegExp(`uses ${kind}`));
    await assert.rejects(connectTo(relay, other, { webSocket: WebSocket }), refused);
  });
}

test("the error in a page whose policy forbids WebAssembly names the required directive", async (t) => {
  const policy = { "content-security-policy": "default-src 'self'; connect-src *" };
  const { page, url } = await openWith(t, { game: "127.0.0.1:9" }, policy);
  const { code, message } = await page.evaluate(async (address) => {
    const { connect } = await import("/dist/index.js");
    return connect(address, { target: "game" }).catch(({ code, message }) => ({ code, message }));
  }, url);
  assert.equal(code, "wasm-unavailable");
  assert.match(message, /policy of the page needs 'wasm-unsafe-eval' in script-src/);
});
