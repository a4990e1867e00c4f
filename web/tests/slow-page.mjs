// Usage: slow-page.mjs URL PROTOCOL SNAPSHOTS BLOCKED_MS SECONDS. The players of two pages walk about in the running
// demo for SECONDS. The main thread of the first page is blocked for BLOCKED_MS of every 100 ms. Prints one line of
// JSON with the measurements of both pages.

import { setTimeout as sleep } from "node:timers/promises";

import { SOFTWARE_WEBGL, launch } from "./browser.mjs";
import { Player } from "./game.mjs";

const EVERY_MS = 100;
const SETTLE_MS = 3_000;
const TICK_MS = 1_000 / 60;
/** The sampling interval for the age of the displayed state. */
const SAMPLE_MS = 5;
const DRAWN_COARSELY = { viewport: { width: 640, height: 480 }, reducedMotion: "reduce" };

/** Runs in a page before its own scripts: installs the measurement. */
function installMeter() {
  const { setInterval: every, setTimeout: after, requestAnimationFrame: beforeDrawing } = window;
  const meter = { events: 0, shown: [], roundTrips: [], spentMs: { network: 0, frames: 0, drawing: 0 } };
  const wall = () => performance.timeOrigin + performance.now();
  const timed = (kind, run) => (...args) => {
    const begun = performance.now();
    run(...args);
    meter.spentMs[kind] += performance.now() - begun;
  };
  let shown;
  let roundTrip;
  const look = () => {
    const { time, roundTripMs } = window.snowfight;
    if (time !== shown) {
      shown = time;
      meter.shown.push([wall(), time]);
    }
    if (roundTripMs !== roundTrip) {
      roundTrip = roundTripMs;
      meter.roundTrips.push([wall(), roundTripMs]);
    }
  };
  // The page's only timer runs its frames, and its only WebSocket is that of the game.
  window.setInterval = (run, ms) => {
    const frames = timed("frames", run);
    return every(() => {
      frames();
      look();
    }, ms);
  };
  window.requestAnimationFrame = (run) => beforeDrawing(timed("drawing", run));
  const listen = WebSocket.prototype.addEventListener;
  WebSocket.prototype.addEventListener = function addEventListener(type, listener, options) {
    const handle = timed("network", (event) => {
      meter.events += 1;
      listener.call(this, event);
    });
    listen.call(this, type, type === "message" ? handle : listener, options);
  };
  /** Blocks the main thread for a part of the time. */
  meter.block = (ms, everyMs) => {
    const block = () => {
      const end = performance.now() + ms;
      while (performance.now() < end);
      after(block, everyMs - ms);
    };
    block();
  };
  /** Walks in changing directions. */
  meter.walk = () => {
    const keys = ["KeyW", "KeyA", "KeyS", "KeyD"];
    let step = 0;
    const press = (type) => dispatchEvent(new KeyboardEvent(type, { code: keys[step % keys.length], cancelable: true }));
    every(() => {
      press("keyup");
      step += 1;
      press("keydown");
    }, 700);
  };
  meter.read = () => ({ ...meter, spentMs: { ...meter.spentMs }, now: wall() });
  window.meter = meter;
}

async function open(browser, address) {
  const page = await browser.newPage(DRAWN_COARSELY);
  page.on("pageerror", (error) => console.error("page:", error.message));
  await page.addInitScript(installMeter);
  await page.goto(address);
  await page.waitForFunction(() => document.body.dataset.drawn === "yes", null, { timeout: 60_000 });
  return new Player(page);
}

const read = ({ page }) => page.evaluate(() => window.meter.read());

/** Returns the median and the 99th percentile, in milliseconds. */
function percentiles(values) {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
  const round = (value) => (value === undefined ? null : Math.round(value));
  return { p50: round(at(0.5)), p99: round(at(0.99)) };
}

/**
 * Returns the ages of the displayed states between two moments. `began` is the earliest time at which the first tick
 * could have been shown.
 */
function ages(shown, from, to, began) {
  const all = [];
  let index = 0;
  for (let now = from; now < to; now += SAMPLE_MS) {
    while (index + 1 < shown.length && shown[index + 1][0] <= now) {
      index += 1;
    }
    const [at, time] = shown[index];
    if (at <= now) {
      all.push(now - began - time * TICK_MS);
    }
  }
  return all;
}

function report(before, after, began) {
  const seconds = (after.now - before.now) / 1_000;
  const isWithin = ([at]) => at >= before.now && at < after.now;
  const spent = Object.entries(after.spentMs).map(([kind, ms]) => [kind, Math.round((ms - before.spentMs[kind]) / seconds)]);
  const shown = after.shown.filter(isWithin).length;
  return {
    round_trip_ms: percentiles(after.roundTrips.filter(isWithin).map(([, ms]) => ms)),
    age_ms: percentiles(ages(after.shown, before.now, after.now, began)),
    shown_per_second: Math.round(shown / seconds),
    events_per_second: Math.round((after.events - before.events) / seconds),
    events_per_shown: Math.round((after.events - before.events) / Math.max(1, shown)),
    main_thread_ms_per_second: Object.fromEntries(spent),
  };
}

async function measure(browser, url, transport, scope, blockedMs, seconds) {
  // Measures pages that run the connection in the main thread.
  const address = new URL("?quality=low&worker=no", url).href;
  const [slow, other] = [await open(browser, address), await open(browser, address)];
  for (const player of [other, slow]) {
    await player.join(transport, scope);
    await player.page.evaluate(() => window.meter.walk());
  }
  await slow.page.evaluate(([ms, every]) => ms > 0 && window.meter.block(ms, every), [blockedMs, EVERY_MS]);
  await sleep(SETTLE_MS);
  const before = [await read(slow), await read(other)];
  await sleep(seconds * 1_000);
  const after = [await read(slow), await read(other)];
  // All programs share the clock of this machine, so the snapshot with the shortest delay reveals the time of tick 0.
  const began = Math.min(...after.flatMap(({ shown }) => shown.filter(([, time]) => time > 0).map(([at, time]) => at - time * TICK_MS)));
  return { slow: report(before[0], after[0], began), other: report(before[1], after[1], began), events: after[0].events + after[1].events };
}

const [url, transport, scope, blockedMs, seconds] = process.argv.slice(2);
if (seconds === undefined) {
  console.error("usage: slow-page.mjs URL PROTOCOL SNAPSHOTS BLOCKED_MS SECONDS");
  process.exit(2);
}
let outcome;
let browser;
try {
  browser = await launch(SOFTWARE_WEBGL);
  outcome = await measure(browser, url, transport, scope, Number(blockedMs), Number(seconds));
} catch (error) {
  outcome = { error: error.message };
} finally {
  await browser?.close();
}
console.log(JSON.stringify(outcome));
process.exit(outcome.error === undefined ? 0 : 1);
