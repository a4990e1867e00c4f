// What becomes of an open connection when its tab is closed, reloaded, left and shown again, or frozen: what its page sees, and what
// the server of the game does.

import { performance } from "node:perf_hooks";

import { startLoggedEcho, startRelay, until } from "../support.mjs";
import { startTcpWay } from "../way.mjs";

/** Opens a connection, and notes what happens to it. */
const OPEN = (url) => `(async () => {
  const { connect } = await import("/dist/index.js");
  const connection = await connect(${JSON.stringify(url)}, { target: "game", transport: "websocket", timeoutMs: 60000 });
  globalThis.events = [];
  for (const name of ["interrupted", "resumed"]) {
    connection.addEventListener(name, () => globalThis.events.push(name));
  }
  connection.closed.then(({ code }) => globalThis.events.push(code));
  globalThis.connection = connection;
  return "open";
})()`;

/** Waits until it is clear what becomes of the connection. */
const GO_ON = `(async () => {
  while (["interrupted", undefined].includes(globalThis.events.at(-1))) await new Promise((resolve) => setTimeout(resolve, 5));
  return globalThis.events.join(", ");
})()`;

/**
 * The rows. `openTab` opens a tab at a URL: `evaluate` is what an expression there is, `close`, `reload`, `leave` and `comeBack` do
 * that, and `freeze` and `thaw` where the browser can.
 */
export async function tabRows(t, openTab, home, { keepsPages = false, freezesPages = false } = {}) {
  const echo = await startLoggedEcho(t);
  const relay = await startRelay(t, { game: `${echo.address},kind=raknet` });
  const way = await startTcpWay(t, relay);
  const ends = () => echo.logged().match(/(?<= disconnected .*reason=).*/g) ?? [];
  const rows = [];

  /** Does something to a new tab with a connection. `later` is what its page sees then. */
  async function row(what, happens, expected, later = async () => undefined) {
    const tab = await openTab(home);
    await tab.evaluate(OPEN(way.url));
    const before = ends().length;
    const startedAt = performance.now();
    await happens(tab);
    const hears = expected.server !== undefined;
    if (hears) {
      await until(() => ends().length > before, `the server hears of it: ${what}`);
    }
    const page = await later(tab);
    const ms = Math.round(performance.now() - startedAt);
    rows.push({ what, seen: { page, server: hears ? ends().at(-1) : undefined }, expected, ms });
    if (what !== "closed") {
      await tab.close();
      await until(() => ends().length > before, "the server hears that the tab is gone");
    }
  }

  const gone = "the other peer disconnected";
  await row("closed", (tab) => tab.close(), { page: undefined, server: gone });
  await row("reloaded", (tab) => tab.reload(), { page: "open", server: gone }, (tab) => tab.evaluate(OPEN(way.url)));
  // A page that the browser has not kept is loaded anew.
  const [page, look] = keepsPages ? ["page-left", GO_ON] : ["open", OPEN(way.url)];
  await row("restored", (tab) => tab.leave().then(tab.comeBack), { page, server: gone }, (tab) => tab.evaluate(look));
  if (freezesPages) {
    const freeze = async (tab) => {
      await tab.freeze();
      way.cut();
      await tab.thaw();
    };
    await row("frozen", freeze, { page: "interrupted, resumed", server: undefined }, (tab) => tab.evaluate(GO_ON));
  }
  return rows;
}
