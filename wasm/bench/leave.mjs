// How long after a page was left its server hears of it, in milliseconds: `node bench/leave.mjs [RUNS [TRANSPORTS]]`, by default 20
// runs of each transport, with RAKWIRE_BIN and RAKWIRE_RELAY_BIN as for the tests. A row for each way to leave, transport and mode
// says the longest time, and how many of the runs took less than half a second.

import { performance } from "node:perf_hooks";

import { openWith } from "../tests/package-page.mjs";
import { startLoggedEcho, startRelay } from "../tests/support.mjs";

const RUNS = Number(process.argv[2] ?? 20);
const GOAL_MS = 500;
/** A server that is not told gives a silent client up after 10 s. */
const LONGEST_MS = 20_000;
const TRANSPORTS = process.argv[3]?.split(",") ?? ["websocket", "webtransport", "webrtc"];
/** How a page is left. A dev server that has no hot update for a change reloads the page itself. */
const LEAVE = {
  close: (page) => page.close(),
  reload: (page) => page.reload(),
  navigate: (page) => page.goto("about:blank"),
  "hot reload": (page) => page.evaluate(() => location.reload()),
};

const cleanUp = [];
const context = { after: (work) => cleanUp.unshift(work) };
const echo = await startLoggedEcho(context);
// Data channels do not say of which origin their page is.
const relay = await startRelay(context, { game: `${echo.address},kind=raknet` }, "--webrtc-allow-without-origin");
const url = `ws://${relay.address}/ws`;
const { page: first } = await openWith(context, { game: echo.address });
const browser = first.context().browser();
const home = first.url();

/** How many connections have ended, at the server. */
const ended = () => echo.logged().match(/ disconnected /g)?.length ?? 0;

async function run(leave, transport, inWorker) {
  const page = await browser.newPage();
  await page.goto(home);
  await page.evaluate(async ([address, transport, inWorker]) => {
    const { connect } = await import("/dist/index.js");
    const { worker } = await import("/dist/worker.js");
    globalThis.connection = await connect(address, { target: "game", transport, timeoutMs: 60_000, ...(inWorker && { worker }) });
  }, [url, transport, inWorker]);
  const before = ended();
  const startedAt = performance.now();
  const left = leave(page).catch(() => undefined);
  while (ended() === before && performance.now() - startedAt < LONGEST_MS) {
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  const ms = performance.now() - startedAt;
  await left;
  await page.close().catch(() => undefined);
  return ms;
}

console.log(`| left by | transport | mode | below ${GOAL_MS} ms | longest |\n|---|---|---|---|---|`);
for (const transport of TRANSPORTS) {
  // Workers have no data channels.
  for (const inWorker of transport === "webrtc" ? [false] : [false, true]) {
    for (const [how, leave] of Object.entries(LEAVE)) {
      const times = [];
      while (times.length < RUNS) {
        times.push(await run(leave, transport, inWorker));
      }
      const within = times.filter((ms) => ms < GOAL_MS).length;
      console.log(`| ${how} | ${transport} | ${inWorker ? "worker" : "page"} | ${within} of ${RUNS} | ${Math.round(Math.max(...times))} ms |`);
    }
  }
}
for (const work of cleanUp) {
  await work();
}
process.exit(0);
