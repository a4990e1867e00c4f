// The disconnect that a server receives when a page is left: from the page itself, or from the relay on its behalf.

import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { test } from "node:test";
import { WebSocket } from "ws";

import { connect } from "rakwire";

import { DISCONNECTED, LEAVE } from "./leave.mjs";
import { openWith } from "./package-page.mjs";
import { PROTOCOLS } from "./protocols.mjs";
import { LIMIT_MS, next, startLoggedEcho, startRelay, until } from "./support.mjs";

/** Returns the reasons for which connections to a server were closed. */
const ends = (echo) => echo.logged().match(/(?<= disconnected .*reason=).*/g) ?? [];

for (const protocol of PROTOCOLS) {
  const kind = protocol.name === "RakNet" ? "raknet" : "game-protocol";
  test(`${protocol.name}: the server is notified of every way to leave a page with a WebSocket`, async (t) => {
    const echo = await startLoggedEcho(t, ...protocol.echo);
    // The page's last datagrams may be lost, so the relay also notifies the server.
    const { page: first, url } = await openWith(t, { game: `${echo.address},kind=${kind}` });
    const reasons = {};
    for (const [how, leave] of Object.entries(LEAVE)) {
      const page = await first.context().browser().newPage();
      await page.goto(first.url());
      await page.evaluate(async ([address, options]) => {
        const { connect } = await import("/dist/index.js");
        globalThis.connection = await connect(address, { target: "game", transport: "websocket", timeoutMs: 60_000, ...options });
        // Data is in transit when the page is left.
        globalThis.addEventListener("pagehide", () => globalThis.connection.send(new Uint8Array(1_000).fill(0xfe)), { capture: true });
      }, [url, protocol.options]);
      const before = ends(echo).length;
      const left = leave(page).catch(() => undefined);
      await until(() => ends(echo).length > before, `the server is notified: ${how}`);
      reasons[how] = ends(echo).at(-1);
      await left;
      await page.close();
    }
    assert.deepEqual(reasons, Object.fromEntries(Object.keys(LEAVE).map((how) => [how, DISCONNECTED])));
  });

  test(`${protocol.name}: a relay that knows the protocol notifies the server of a closed WebSocket`, async (t) => {
    const echo = await startLoggedEcho(t, ...protocol.echo);
    const relay = await startRelay(t, { game: `${echo.address},kind=${kind}` });
    const sockets = [];
    class Kept extends WebSocket {
      constructor(...given) {
        super(...given);
        sockets.push(this);
      }
    }
    const connection = await connect(`ws://${relay.address}/ws`, { target: "game", webSocket: Kept, timeoutMs: LIMIT_MS, ...protocol.options });
    connection.send(Uint8Array.of(0xfe));
    await next(connection);
    // Closes the WebSocket like a browser after its page was closed.
    sockets[0].close(1001);
    await until(() => ends(echo).length === 1, "the server is notified");
    assert.deepEqual(ends(echo), [DISCONNECTED]);
  });
}

for (const protocol of PROTOCOLS) {
  const kind = protocol.name === "RakNet" ? "raknet" : "game-protocol";
  test(`${protocol.name}: leaving a page closes its idle connection, and a connection that is not open yet`, async (t) => {
    const echo = await startLoggedEcho(t, ...protocol.echo);
    const silent = createSocket("udp4");
    t.after(() => silent.close());
    await new Promise((resolve) => silent.bind(0, "127.0.0.1", resolve));
    // Closing a WebTransport session may drop the last datagram, so the relay also notifies the server.
    const { page, url } = await openWith(t, { game: `${echo.address},kind=${kind}`, silent: `127.0.0.1:${silent.address().port}` });
    const errors = [];
    page.on("console", (message) => message.text().startsWith("rakwire:") && errors.push(message.text()));
    const asked = new Promise((resolve) => silent.once("message", resolve));
    await page.evaluate(async ([address, options]) => {
      const { connect } = await import("/dist/index.js");
      const shared = { timeoutMs: 60_000, ...options };
      globalThis.idle = await connect(address, { target: "game", ...shared });
      globalThis.attempt = connect(address, { target: "silent", ...shared }).catch(({ code }) => code);
    }, [url, protocol.options]);
    await asked;
    const ended = await page.evaluate(async () => {
      dispatchEvent(new PageTransitionEvent("pagehide", { persisted: true }));
      return [(await globalThis.idle.closed).code, await globalThis.attempt];
    });
    assert.deepEqual([ended, errors], [["page-left", "page-left"], []]);
    await until(() => ends(echo).length === 1, "the server is notified");
    assert.deepEqual(ends(echo), [DISCONNECTED]);
  });
}

test("leaving a page closes its connection with page-left, unless endWithPage is false", async (t) => {
  const echo = await startLoggedEcho(t);
  const { page, url } = await openWith(t, { game: echo.address });
  const codes = await page.evaluate(async (address) => {
    const { connect } = await import("/dist/index.js");
    const options = { target: "game", timeoutMs: 60_000 };
    const one = await connect(address, options);
    const other = await connect(address, { ...options, endWithPage: false });
    // Dispatches the event that a page gets when it is put into the back/forward cache.
    dispatchEvent(new PageTransitionEvent("pagehide", { persisted: true }));
    return [(await one.closed).code, (await other.close()).code];
  }, url);
  assert.deepEqual(codes, ["page-left", "local"]);
});
