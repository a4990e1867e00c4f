// Measures the time in milliseconds from leaving a page until its server notices. Usage: `node bench/leave.mjs [RUNS
// [TRANSPORTS [BROWSERS [KINDS]]]]`; by default, 20 runs of each transport in Chromium and Firefox, with a relay that
// knows the protocol (`raknet`) and one that does not (`raw`). Set RAKWIRE_BIN and RAKWIRE_RELAY_BIN as for the tests.
//
// Each row of the output is a combination of navigation, transport and mode. Its columns are the number of runs in
// which the player disconnected, the number of runs in which this took less than half a second, the longest time, and
// the total duration. The rows of a dev server measure from saving a script. They need the packages of tests/bundlers,
// and run in Chromium with a relay that knows the protocol.
//
// Exits with 1 and the names of rows in which a player did not disconnect within half a second. Rows of Firefox with a
// relay that does not know the protocol are exempt, because Firefox drops the last datagrams of some pages.

import { existsSync } from "node:fs";
import { performance } from "node:perf_hooks";

import { DISCONNECTED, ENDS, WAYS, nameOf, startLeaving, startLeavingFirefox, startLogged } from "../tests/leave.mjs";
import { until } from "../tests/support.mjs";

const RUNS = Number(process.argv[2] ?? 20);
const GOAL_MS = 500;
const list = (index, all) => process.argv[index]?.split(",") ?? all;
const TRANSPORTS = list(3, ["websocket", "webtransport", "webrtc"]);
const BROWSERS = list(4, ["Chromium", "Firefox"]);
const KINDS = list(5, ["raknet", "raw"]);

const cleanUp = [];
const context = { after: (work) => cleanUp.unshift(work) };
const ways = WAYS.filter(({ transport }) => TRANSPORTS.includes(transport));
const failed = [];

async function stop() {
  for (const work of cleanUp.splice(0)) {
    await work();
  }
}

async function row(browser, kind, how, way, run, isSure = true) {
  const runs = [];
  const startedAt = performance.now();
  while (runs.length < RUNS) {
    runs.push(await run());
  }
  const disconnected = runs.filter(({ reason }) => reason === DISCONNECTED).length;
  const within = runs.filter(({ ms }) => ms < GOAL_MS).length;
  const longest = Math.round(Math.max(...runs.map(({ ms }) => ms)));
  const seconds = Math.round((performance.now() - startedAt) / 1_000);
  console.log(`| ${browser} | ${kind} | ${how} | ${way.transport} | ${way.inWorker ? "worker" : "page"} | ${disconnected} of ${RUNS} | ${within} of ${RUNS} | ${longest} ms | ${seconds} s |`);
  if (isSure && (disconnected < RUNS || within < RUNS)) {
    failed.push(`${browser}, ${kind}, ${how}, ${nameOf(way)}`);
  }
}

console.log(`| browser | kind | left by | transport | mode | disconnected | below ${GOAL_MS} ms | longest | all runs |\n|${"---|".repeat(9)}`);
for (const browser of BROWSERS) {
  for (const kind of KINDS) {
    for (const way of ways) {
      const isChromium = browser === "Chromium";
      const leave = await (isChromium ? startLeaving(context, `,kind=${kind}`) : startLeavingFirefox(context, `,kind=${kind}`, way));
      for (const how of ENDS) {
        await row(browser, kind, how, way, () => leave(how, way), isChromium || kind !== "raw");
      }
      await stop();
    }
  }
}
if (BROWSERS.includes("Chromium") && KINDS.includes("raknet") && existsSync(new URL("../tests/bundlers/node_modules/vite8", import.meta.url))) {
  const { SCRIPTS, openDevPage } = await import("../tests/bundlers/dev-page.mjs");
  for (const way of ways) {
    for (const update of Object.keys(SCRIPTS)) {
      const { url, ends } = await startLogged(context);
      const page = await openDevPage(context, update, url, way);
      await row("Chromium", "raknet", `${update} of Vite`, way, async () => {
        const [before, startedAt] = [ends().length, performance.now()];
        const saved = page.save();
        await until(() => ends().length > before, "the server is notified");
        const ms = performance.now() - startedAt;
        await saved;
        return { reason: ends().at(-1), ms };
      });
    }
  }
}
await stop();
for (const name of failed) {
  console.error(`not all players disconnected within ${GOAL_MS} ms: ${name}`);
}
process.exit(failed.length === 0 ? 0 : 1);
