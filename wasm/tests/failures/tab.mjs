// The closing of an open connection when its tab is closed, reloaded, left and shown again, or frozen, as observed by
// its page and by the game server.

import assert from "node:assert/strict";
import { performance } from "node:perf_hooks";

import { DISCONNECTED, SILENT } from "../leave.mjs";
import { startLoggedEcho, startRelay, until } from "../support.mjs";
import { startTcpWay } from "../way.mjs";

/**
 * The time after which a server times out a silent player, which is the deadline of every closing. A page that
 * continues afterwards detects in the same time that its server is silent.
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

/** Waits until the outcome of the connection is clear, if the page still has it. */
const GO_ON = (open) => `(async () => {
  if (globalThis.events === undefined) return ${open};
  while (["interrupted", undefined].includes(globalThis.events.at(-1))) await new Promise((resolve) => setTimeout(resolve, 5));
  return globalThis.events.join(", ");
})()`;

/** The number of times that a timer of the page has run. */
const TICKS = "globalThis.ticks";
const TICK = `(${TICKS} = 0, setInterval(() => (${TICKS} += 1), 5), undefined)`;

/** Earlier messages are echoed, and the connection had no event. */
const ECHO = `(async () => {
  globalThis.connection.send(Uint8Array.of(0xfe), { reliability: "reliable" });
  await globalThis.connection.receive();
  return ["goes on", ...globalThis.events].join(", ");
})()`;

/**
 * The rows of one transport, with or without a worker. `openTab` opens a tab at a URL. Its `evaluate` returns the value
 * of an expression, and `close`, `reload`, `leave` and `comeBack` navigate. If the browser can freeze pages, it also
 * has `freeze` and `thaw`, and `ask` for a value meanwhile; `stop` halts the processes of all tabs with their workers,
 * and `goOn` resumes them. The relay listens at `listen`.
 */
export async function tabRows(t, openTab, home, mode, { keepsPages = false, freezesPages = false, listen = "127.0.0.1:0" } = {}) {
  const echo = await startLoggedEcho(t);
  const relay = await startRelay(t, { game: `${echo.address},kind=raknet` }, "--allow-any-origin", "--listen", listen);
  const way = mode.transport === "websocket" ? await startTcpWay(t, relay) : { url: `ws://${relay.address}/ws` };
  const open = OPEN(way.url, mode);
  const ends = () => echo.logged().match(/(?<= disconnected .*reason=).*/g) ?? [];
  const rows = [];

  /** Does something to a new tab with a connection. `later` returns what its page observed afterwards. */
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
      await tab.close();
      await until(() => ends().length > before, "the server is notified that the tab is gone");
    }
  }

  await row("closed", (tab) => tab.close(), { page: undefined, server: DISCONNECTED });
  await row("reloaded", (tab) => tab.reload(), { page: "open", server: DISCONNECTED }, (tab) => tab.evaluate(open));
  // A page that the browser has not kept is reloaded.
  const restored = { page: keepsPages ? "page-left" : "open", server: DISCONNECTED };
  await row("restored", (tab) => tab.leave().then(tab.comeBack), restored, (tab) => tab.evaluate(GO_ON(open)));
  if (freezesPages) {
    const freeze = async (tab) => {
      await tab.evaluate(TICK);
      await until(async () => (await tab.evaluate(TICKS)) > 0, "a timer of the page runs");
      await tab.freeze();
      const ticks = await tab.ask(TICKS);
      way.cut?.();
      // Another player connects and plays meanwhile.
      const other = await openTab(home);
      await other.evaluate(open);
      await other.evaluate(ECHO);
      assert.equal(await tab.ask(TICKS), ticks, "nothing runs in a tab that is frozen");
      await tab.thaw();
      return other;
    };
    const [page, look] = way.cut ? ["interrupted, resumed", GO_ON(open)] : ["goes on", ECHO];
    let other;
    await row("frozen", async (tab) => (other = await freeze(tab)), { page, server: undefined }, (tab) => tab.evaluate(look));
    await other.close();
    const given = { page: "lost", server: SILENT };
    await row("stopped until the server gives it up", (tab) => tab.stop(), given, async (tab) => {
      await tab.goOn();
      return tab.evaluate(GO_ON(open));
    });
  }
  return rows;
}
