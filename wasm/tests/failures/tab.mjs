// The effects of closing, reloading, leaving and freezing a tab on its open connection, as observed by its page and by
// the game server.

import assert from "node:assert/strict";
import { performance } from "node:perf_hooks";

import { DISCONNECTED, SILENT } from "../leave.mjs";
import { startLoggedEcho, startRelay, until } from "../support.mjs";
import { startTcpWay } from "../way.mjs";

/**
 * The time after which a server times out a silent player, which is the deadline for the server to notice a closed
 * connection. A page detects a silent server after the same time.
 */
const SILENCE_MS = 10_000;

/** Opens a connection, and records its events. */
const OPEN = (url, { transport, inWorker }) => `(async () => {
  const { connect } = await import("/dist/index.js");
  const { worker } = await import("/dist/worker.js");
  const connection = await connect(${JSON.stringify(url)}, { target: "game", transport: "${transport}", timeoutMs: 60000, ${inWorker ? "worker" : ""} });
  globalThis.events = [];
  for (const name of ["interrupted", "resumed"]) {
    connection.addEventListener(name, () => globalThis.events.push(name));
  }
  connection.closed.then(({ code }) => globalThis.events.push(code));
  globalThis.connection = connection;
  return "open";
})()`;

/**
 * Waits until the connection of the page has closed or proved to be open. Returns `undefined` if the page has no
 * connection.
 */
const GO_ON = (open) => `(async () => {
  if (globalThis.events === undefined) return ${open};
  while (["interrupted", undefined].includes(globalThis.events.at(-1))) await new Promise((resolve) => setTimeout(resolve, 5));
  return globalThis.events.join(", ");
})()`;

/** Matches the observations of a page that has an open connection. */
const IS_OPEN = /^(open|goes on|interrupted, resumed)$/;

/** The number of times that a timer of the page has run. */
const TICKS = "globalThis.ticks";
const TICK = `(${TICKS} = 0, setInterval(() => (${TICKS} += 1), 5), undefined)`;

/** Checks that the connection had no event, and that messages are still echoed. */
const ECHO = `(async () => {
  globalThis.connection.send(Uint8Array.of(0xfe), { reliability: "reliable" });
  await globalThis.connection.receive();
  return ["goes on", ...globalThis.events].join(", ");
})()`;

/**
 * Returns the rows of one transport, with or without a worker. The relay listens on `listen`. `openTab` opens a tab at
 * a URL, which has these methods:
 *
 * - `evaluate` returns the value of an expression.
 * - `close`, `reload`, `leave` and `comeBack` navigate.
 * - If the browser can freeze pages, `freeze` and `thaw` do so, and `ask` reads a value of a frozen page.
 * - `stop` halts the processes of all tabs with their workers, and `goOn` resumes them.
 */
export async function tabRows(t, openTab, home, mode, { keepsPages = false, freezesPages = false, listen = "127.0.0.1:0" } = {}) {
  const echo = await startLoggedEcho(t);
  const relay = await startRelay(t, { game: `${echo.address},kind=raknet` }, "--allow-any-origin", "--listen", listen);
  const way = mode.transport === "websocket" ? await startTcpWay(t, relay) : { url: `ws://${relay.address}/ws` };
  const open = OPEN(way.url, mode);
  const ends = () => echo.logged().match(/(?<= disconnected .*reason=).*/g) ?? [];
  const rows = [];

  /** Closes a tab. If it has an open connection, waits until the server has logged its end. */
  async function close(tab, isOpen) {
    const before = ends().length;
    await tab.close();
    await until(() => ends().length === before + (isOpen ? 1 : 0), "the server has logged the end of the connection");
  }

  /**
   * Opens a tab with a connection and calls `happens` on it. `later` returns the observations of the page afterwards.
   */
  async function row(what, happens, expected, later = async () => undefined) {
    const tab = await openTab(home);
    await tab.evaluate(open);
    const before = ends().length;
    const startedAt = performance.now();
    await happens(tab);
    const hears = expected.server !== undefined;
    if (hears) {
      await until(() => ends().length > before, `the server is notified: ${what}`);
    }
    const page = await later(tab);
    const ms = Math.round(performance.now() - startedAt);
    rows.push({ what, seen: { page, server: ends()[before] }, expected, ms, deadlineMs: 2 * SILENCE_MS });
    if (what !== "closed") {
      await close(tab, IS_OPEN.test(page));
    }
  }

  await row("closed", (tab) => tab.close(), { page: undefined, server: DISCONNECTED });
  await row("reloaded", (tab) => tab.reload(), { page: "open", server: DISCONNECTED }, (tab) => tab.evaluate(open));
  // The browser reloads a page that is not in its back/forward cache.
  const restored = { page: keepsPages ? "page-left" : "open", server: DISCONNECTED };
  await row("restored", (tab) => tab.leave().then(tab.comeBack), restored, (tab) => tab.evaluate(GO_ON(open)));
  if (freezesPages) {
    const freeze = async (tab) => {
      await tab.evaluate(TICK);
      await until(async () => (await tab.evaluate(TICKS)) > 0, "a timer of the page runs");
      await tab.freeze();
      const ticks = await tab.ask(TICKS);
      way.cut?.();
      // A player in another tab connects and plays while the first tab is frozen.
      const other = await openTab(home);
      await other.evaluate(open);
      await other.evaluate(ECHO);
      assert.equal(await tab.ask(TICKS), ticks, "the timer of a frozen tab must not run");
      await tab.thaw();
      return other;
    };
    const [page, look] = way.cut ? ["interrupted, resumed", GO_ON(open)] : ["goes on", ECHO];
    let other;
    await row("frozen", async (tab) => (other = await freeze(tab)), { page, server: undefined }, (tab) => tab.evaluate(look));
    await close(other, true);
    const given = { page: "lost", server: SILENT };
    await row("stopped until the server gives it up", (tab) => tab.stop(), given, async (tab) => {
      await tab.goOn();
      return tab.evaluate(GO_ON(open));
    });
  }
  return rows;
}
