// How long after a page was left its server hears of it, in milliseconds: `node bench/leave.mjs [RUNS [TRANSPORTS]]`, by default 20
// runs of each transport, with RAKWIRE_BIN and RAKWIRE_RELAY_BIN as for the tests. A row for each way to leave, transport and mode
// says the longest time, how many of the runs took less than half a second, in how many the player disconnected, and how long all of
// them took. The rows of a dev server need the packages of tests/bundlers, and have the time from the save of a script. It ends with 1
// and the names of the rows in which a player did not disconnect within half a second.

import { existsSync } from "node:fs";
import { performance } from "node:perf_hooks";

import { DISCONNECTED, LEAVE, WAYS, nameOf, startLeaving, startLogged } from "../tests/leave.mjs";
import { until } from "../tests/support.mjs";

const RUNS = Number(process.argv[2] ?? 20);
const GOAL_MS = 500;
const TRANSPORTS = process.argv[3]?.split(",") ?? ["websocket", "webtransport", "webrtc"];

const cleanUp = [];
const context = { after: (work) => cleanUp.unshift(work) };
const ways = WAYS.filter(({ transport }) => TRANSPORTS.includes(transport));
const failed = [];

async function row(how, way, run) {
  const runs = [];
  const startedAt = performance.now();
  while (runs.length < RUNS) {
    runs.push(await run());
  }
  const disconnected = runs.filter(({ reason }) => reason === DISCONNECTED).length;
  const within = runs.filter(({ ms }) => ms < GOAL_MS).length;
  const longest = Math.round(Math.max(...runs.map(({ ms }) => ms)));
  const seconds = Math.round((performance.now() - startedAt) / 1_000);
  console.log(`| ${how} | ${way.transport} | ${way.inWorker ? "worker" : "page"} | ${disconnected} of ${RUNS} | ${within} of ${RUNS} | ${longest} ms | ${seconds} s |`);
  if (disconnected < RUNS || within < RUNS) {
    failed.push(`${how}, ${nameOf(way)}`);
  }
}

console.log(`| left by | transport | mode | disconnected | below ${GOAL_MS} ms | longest | all runs |\n|---|---|---|---|---|---|---|`);
const leave = await startLeaving(context);
for (const way of ways) {
  for (const how of Object.keys(LEAVE)) {
    await row(how, way, () => leave(how, way));
  }
}
if (existsSync(new URL("../tests/bundlers/node_modules/vite8", import.meta.url))) {
  const { SCRIPTS, openDevPage } = await import("../tests/bundlers/dev-page.mjs");
  for (const way of ways) {
    for (const update of Object.keys(SCRIPTS)) {
      const { url, ends } = await startLogged(context);
      const page = await openDevPage(context, update, url, way);
      await row(`${update} of Vite`, way, async () => {
        const [before, startedAt] = [ends().length, performance.now()];
        const saved = page.save();
        await until(() => ends().length > before, "the server hears of it");
        const ms = performance.now() - startedAt;
        await saved;
        return { reason: ends().at(-1), ms };
      });
    }
  }
}
for (const work of cleanUp) {
  await work();
}
for (const name of failed) {
  console.error(`not all players disconnected within ${GOAL_MS} ms: ${name}`);
}
process.exit(failed.length === 0 ? 0 : 1);
