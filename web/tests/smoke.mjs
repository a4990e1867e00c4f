// Usage: smoke.mjs URL METRICS FOLDER [--look | --ways=WAY,…]. Two pages play against each other in the running demo,
// once with each protocol and once with replication.
//
// Prints one line of JSON, including the relay's metrics, and saves screenshots in the folder. Fails unless the games
// went as expected. `--ways=game,raknet` plays only these games. `--look` only takes screenshots of a game with bots.

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";

import { SOFTWARE_WEBGL, launch } from "./browser.mjs";
import { Player, fight } from "./game.mjs";

// Drawing is slow without a GPU, so the playing pages use a low quality.
const CALM = { reducedMotion: "reduce" };
const LARGE = { viewport: { width: 1024, height: 640 }, ...CALM };
const SMALL = { viewport: { width: 390, height: 780 }, hasTouch: true, isMobile: true, ...CALM };
const LOOK_MS = 2_000;
const ACTION_MS = 120_000;
/** The number of hits after which a player dies. */
const HEALTH = 3;
/**
 * The expected text of the lock on the winner's page. For a secure connection it depends on the key hash in the link.
 */
const LOCKS = { game: /^$/, raknet: /Encrypted; server verified/, replication: /Encrypted; server unverified/ };
/**
 * The maximum median round trip over loopback in milliseconds. It is longer only if a page or the relay delays
 * datagrams.
 */
const ROUND_TRIP_MS = 50;

async function open(browser, address, options) {
  const page = await browser.newPage(options);
  page.setDefaultTimeout(ACTION_MS);
  page.on("pageerror", (error) => console.error("page:", error.message));
  await page.goto(address);
  await page.waitForFunction(() => document.body.dataset.drawn === "yes");
  return new Player(page);
}

async function drive(browser, url, folder, outcome) {
  for (const way of WAYS) {
    const coarse = new URL(url);
    coarse.searchParams.set("quality", "low");
    const unnamed = new URL(coarse);
    unnamed.searchParams.delete("key");
    // With replication, the link contains no key hash, so the winner's page accepts any server.
    const winner = await open(browser, (way === "replication" ? unnamed : coarse).href, LARGE);
    const loser = await open(browser, coarse.href, SMALL);
    await winner.page.screenshot({ path: `${folder}/start.png` });
    const picture = async (name) => {
      await sleep(100);
      await winner.page.screenshot({ path: `${folder}/${way}-${name}.png` });
      await loser.page.screenshot({ path: `${folder}/${way}-${name}-other.png` });
    };
    outcome[way] = await fight(winner, loser, way, picture);
    await Promise.all([winner, loser].map(({ page }) => page.close()));
    checkGame(way, outcome[way]);
  }
}

function checkWalk({ before, after }, how) {
  assert(Math.hypot(after.x - before.x, after.y - before.y) >= 1, `no player moved ${how}`);
}

function checkGame(way, game) {
  checkWalk(game, "by the keyboard");
  checkWalk(game.touch, "by touch");
  assert(Number.isInteger(game.holder), "no player held an object");
  assert.equal(game.damage, HEALTH, "the damage of all hits must equal the initial health");
  assert.deepEqual([game.won.state, game.lost.state], ["won", "lost"]);
  assert.match(game.lock, LOCKS[way]);
  assert.equal(game.world.includes("Replication"), way === "replication", game.world);
  for (const { relay_drops: drops, round_trip_ms: trips } of game.pages) {
    assert(drops.toClient !== undefined && drops.toServer !== undefined, "the relay's drops are missing");
    assert(trips.connection.p50 < ROUND_TRIP_MS, `the median round trip took ${trips.connection.p50} ms`);
  }
}

/** Opens pages of two new players that watch a running game, with snapshots and with replication. */
async function look(browser, url, folder, outcome) {
  const replicated = await open(browser, url, LARGE);
  await replicated.join("raknet", "replication");
  await replicated.until(() => pilot.other() !== undefined, "the page shows another player by replication");
  await sleep(LOOK_MS);
  await replicated.page.screenshot({ path: `${folder}/bots-replication.png` });
  await replicated.page.close();
  const guest = await open(browser, url, LARGE);
  await guest.join("game");
  await guest.until(() => pilot.other() !== undefined, "the page shows another player");
  await sleep(LOOK_MS);
  await guest.page.screenshot({ path: `${folder}/bots.png` });
  outcome.players = await guest.page.evaluate(() => window.snowfight.scene.filter(({ kind }) => kind === "player").length);
  assert(outcome.players >= 2, `a new player sees ${outcome.players} players`);
}

/** Returns how many datagrams the relay has dropped since its start because a queue was full. */
async function queueFullDrops(metrics) {
  const text = await (await fetch(metrics)).text();
  const counts = [...text.matchAll(/^rakwire_relay_drops_total\{.*reason="queue_full".*\} (\d+)$/gm)].map(([, count]) => Number(count));
  if (counts.length === 0) {
    throw new Error("the metrics of the relay lack the drops of full queues");
  }
  return counts.reduce((sum, count) => sum + count);
}

const [url, metrics, folder, mode] = process.argv.slice(2);
const WAYS = mode?.startsWith("--ways=") ? mode.slice("--ways=".length).split(",") : ["game", "raknet", "replication"];
if (folder === undefined) {
  console.error("usage: smoke.mjs URL METRICS FOLDER [--look | --ways=WAY,…]");
  process.exit(2);
}
const outcome = {};
let browser;
try {
  browser = await launch(SOFTWARE_WEBGL);
  await (mode === "--look" ? look : drive)(browser, url, folder, outcome);
  outcome.queue_full_drops = await queueFullDrops(metrics);
  assert.equal(outcome.queue_full_drops, 0, "datagrams that the relay dropped because a queue was full");
} catch (error) {
  outcome.error = error.message;
} finally {
  await browser?.close();
}
console.log(JSON.stringify(outcome));
process.exit(outcome.error === undefined ? 0 : 1);
