// Pages with a connection that are left, and what their server hears of it.

import { performance } from "node:perf_hooks";

import { openWith } from "./package-page.mjs";
import { startLoggedEcho, startRelay, until } from "./support.mjs";

/** The transports, and whether the protocol runs in a worker: workers have no data channels. */
export const WAYS = [
  { transport: "websocket", inWorker: false },
  { transport: "websocket", inWorker: true },
  { transport: "webtransport", inWorker: false },
  { transport: "webtransport", inWorker: true },
  { transport: "webrtc", inWorker: false },
];

/** A mode in words. */
export const nameOf = ({ transport, inWorker }) => transport + (inWorker ? ", in a worker" : "");

/** How a page is left. */
export const LEAVE = {
  close: (page) => page.close(),
  reload: (page) => page.reload(),
  navigate: (page) => page.goto("about:blank"),
  // A page that is closed while its next one comes may never be.
  "reload by a script": (page) => Promise.all([page.waitForEvent("load"), page.evaluate(() => location.reload())]),
};

/** What a server says of a player who has disconnected, and of no silent one. */
export const DISCONNECTED = "the other peer disconnected";

/** A server, and a relay before it at `url`. `ends` are the reasons for which connections have ended, as the server says them. */
export async function startLogged(t) {
  const echo = await startLoggedEcho(t);
  // Data channels do not say of which origin their page is.
  const relay = await startRelay(t, { game: `${echo.address},kind=raknet` }, "--webrtc-allow-without-origin");
  const ends = () => echo.logged().match(/(?<= disconnected .*reason=).*/g) ?? [];
  return { echo, url: `ws://${relay.address}/ws`, ends };
}

/** Makes pages with a connection and leaves them: for which reason the server ends each then, and after how many milliseconds. */
export async function startLeaving(t) {
  const { echo, url, ends } = await startLogged(t);
  const { page: first } = await openWith(t, { game: echo.address });
  const browser = first.context().browser();
  const home = first.url();
  return async (how, { transport, inWorker }) => {
    const page = await browser.newPage();
    await page.goto(home);
    await page.evaluate(async ([address, transport, inWorker]) => {
      const { connect } = await import("/dist/index.js");
      const { worker } = await import("/dist/worker.js");
      globalThis.connection = await connect(address, { target: "game", transport, timeoutMs: 60_000, ...(inWorker && { worker }) });
    }, [url, transport, inWorker]);
    const before = ends().length;
    const startedAt = performance.now();
    const left = LEAVE[how](page).catch(() => undefined);
    await until(() => ends().length > before, `the server hears of it: ${how}, ${transport}`);
    const ms = performance.now() - startedAt;
    await left;
    await page.close().catch(() => undefined);
    return { reason: ends().at(-1), ms };
  };
}
