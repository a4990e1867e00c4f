// Pages in Chromium on a machine that sleeps or loses its network. They resume their flow at a real relay, and stay
// connected to the game server.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { openWith } from "./package-page.mjs";
import { PROTOCOLS } from "./protocols.mjs";
import { LIMIT_MS, startEcho, until } from "./support.mjs";
import { startTcpWay } from "./way.mjs";

/** The number of messages sent at each step. */
const COUNT = 20;

/** A page with a connection over a path that can be cut, to an echo server. */
async function connectPage(t, protocol) {
  const echo = await startEcho(t, ...protocol.echo);
  const { page, relay } = await openWith(t, { game: echo.address });
  const way = await startTcpWay(t, relay);
  await page.evaluate(async ({ url, options }) => {
    const { connect } = await import("/dist/index.js");
    const connection = await connect(url, { target: "game", transport: "websocket", ...options });
    const away = (globalThis.away = { received: [], events: [], sent: 0 });
    for (const name of ["interrupted", "resumed", "close"]) {
      connection.addEventListener(name, ({ type }) => away.events.push(type));
    }
    connection.onMessage = ({ bytes }) => away.received.push(bytes[1]);
    away.send = (count) => {
      for (; count > 0; count--) connection.send(Uint8Array.of(0xfe, away.sent++), { reliability: "reliable" });
    };
    away.close = () => connection.close();
  }, { url: way.url, options: { timeoutMs: LIMIT_MS, ...protocol.options } });
  const send = () => page.evaluate((count) => globalThis.away.send(count), COUNT);
  const happens = (event) => page.waitForFunction((name) => globalThis.away.events.includes(name), event);
  /** Checks that every message was echoed exactly once, and that the connection was interrupted and resumed once. */
  const finish = async (count) => {
    await page.waitForFunction((least) => globalThis.away.received.length >= least, count);
    const code = await page.evaluate(async () => (await globalThis.away.close()).code);
    const { received, events } = await page.evaluate(() => globalThis.away);
    assert.deepEqual(received.sort((one, other) => one - other), Array.from({ length: count }, (_, number) => number));
    assert.deepEqual(events, ["interrupted", "resumed", "close"]);
    assert.equal(code, "local");
    assert.equal(way.opened, 2);
  };
  return { browser: page.context().browser(), way, send, happens, finish };
}

for (const protocol of PROTOCOLS) {
  test(`${protocol.name}: a page that loses its network resumes its flow without losing or duplicating messages`, async (t) => {
    const { way, send, happens, finish } = await connectPage(t, protocol);
    await send();
    way.isOpen = false;
    way.cut();
    await happens("interrupted");
    await until(() => way.refused > 0, "the page tries to reconnect while the path is cut");
    await send();
    way.isOpen = true;
    await happens("resumed");
    await send();
    await finish(3 * COUNT);
  });

  test(`${protocol.name}: a page that slept while its connection was lost resumes its flow without losing or duplicating messages`, async (t) => {
    const { browser, way, send, happens, finish } = await connectPage(t, protocol);
    const system = await browser.newBrowserCDPSession();
    const { processInfo } = await system.send("SystemInfo.getProcessInfo");
    const renderers = processInfo.filter(({ type }) => type === "renderer").map(({ id }) => id);
    assert.ok(renderers.length > 0, "the browser lists no renderer process");
    const signal = (name) => renderers.forEach((id) => process.kill(id, name));
    await send();
    signal("SIGSTOP");
    // The state is the third field of the line, after the name in parentheses.
    const states = () => renderers.map((id) => readFileSync(`/proc/${id}/stat`, "utf8").replace(/^.*\) /s, "")[0]);
    await until(() => states().every((state) => state === "T"), "the processes of the page are stopped");
    way.isOpen = false;
    way.cut();
    way.isOpen = true;
    signal("SIGCONT");
    await happens("interrupted");
    await happens("resumed");
    await send();
    await finish(2 * COUNT);
  });
}
