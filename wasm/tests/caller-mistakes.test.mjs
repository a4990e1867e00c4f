// What a caller may write by mistake: each is an error that says what to write, and none is left out of account.

import assert from "node:assert/strict";
import { test } from "node:test";
import { WebSocket } from "ws";

import { connect, discover, ping } from "rakwire";
import { connections } from "rakwire/reconnect";
import { connect as connectSecure } from "rakwire/secure";
import { listen } from "rakwire/server";

import { openWith } from "./package-page.mjs";
import { connectTo, echoFixture, PROTOCOLS } from "./protocols.mjs";
import { fails, startEcho, startRelay } from "./support.mjs";

const URL = "ws://127.0.0.1:9/ws";

test("an option that there is not is an error, in every function", async () => {
  const unknown = fails("bad-option", /no option timeout; there are .*timeoutMs/);
  const options = { target: "game", timeout: 5_000 };
  await assert.rejects(async () => connect(URL, options), unknown);
  await assert.rejects(async () => connectSecure(URL, { ...options, serverKey: "any" }), unknown);
  await assert.rejects(ping(URL, options), unknown);
  await assert.rejects(discover(URL, { targets: ["game"], timeout: 5_000 }), unknown);
  await assert.rejects(listen({ prot: 19_132 }), fails("bad-option", /no option prot; there are .*port/));
  assert.throws(() => connections(() => connect(URL), { attempts: 3 }), fails("bad-option", /no option attempts; there are .*maxAttempts/));
});

test("an address without a scheme is an error that writes it with one", async () => {
  for (const address of ["127.0.0.1:8080", "localhost:8080", "play.example.org:443/ws", "[::1]:8080"]) {
    await assert.rejects(async () => connect(address, { target: "game" }), (error) => {
      assert.ok(error.message.includes(`ws://${address}`), error.message);
      return fails("bad-option", /no scheme/)(error);
    });
    await assert.rejects(ping(address, { target: "game" }), fails("bad-option", /no scheme/));
  }
});

test("a user and a password in the URL are an error that names the token", async () => {
  const refused = fails("bad-option", /the option token/);
  for (const address of ["ws://player@127.0.0.1:9/ws", "wss://player:secret@play.example.org/ws"]) {
    await assert.rejects(async () => connect(address, { target: "game" }), refused);
    await assert.rejects(ping(address, { target: "game" }), refused);
  }
});

for (const protocol of PROTOCOLS) {
  test(`${protocol.name}: a message whose buffer was transferred is told apart from an empty one`, async (t) => {
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

  test(`${protocol.name}: a client of the other protocol is told so by a relay that knows its target`, async (t) => {
    const [server, other] = [...PROTOCOLS].sort((one) => (one === protocol ? -1 : 1));
    const echo = await startEcho(t, ...server.echo);
    const kind = server.name === "RakNet" ? "raknet" : "game-protocol";
    const relay = await startRelay(t, { game: `${echo.address},kind=${kind}` });
    const refused = fails("incompatible-protocol", new RegExp(`speaks ${kind}`));
    await assert.rejects(connectTo(relay, other, { webSocket: WebSocket }), refused);
  });
}

test("a policy that forbids WebAssembly is an error that names what it has to allow", async (t) => {
  const policy = { "content-security-policy": "default-src 'self'; connect-src *" };
  const { page, url } = await openWith(t, { game: "127.0.0.1:9" }, policy);
  const { code, message } = await page.evaluate(async (address) => {
    const { connect } = await import("/dist/index.js");
    return connect(address, { target: "game" }).catch(({ code, message }) => ({ code, message }));
  }, url);
  assert.equal(code, "wasm-unavailable");
  assert.match(message, /policy of the page needs 'wasm-unsafe-eval' in script-src/);
});
