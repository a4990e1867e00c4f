// Measures one transport of the package in Chromium: round trips of small messages, and the throughput up and down.
// Prints one line of JSON. `cargo xtask bench transports` runs it over a simulated path with latency and loss.

import { withBrowser } from "./pages.mjs";

/** The interval in milliseconds at which a game sends. */
const TICK_MS = 1_000 / 60;

/** Runs in a page before each measurement: connects, and stores shared values in `globalThis`. */
async function open([url, options]) {
  const [{ connect }, { Session }] = await Promise.all([import("/dist/index.js"), import("/dist/session.js")]);
  const { profile, ...settings } = options;
  if (profile === "datagrams") {
    // Treats the WebSocket like a carrier that loses datagrams.
    Session.prototype.onCarrier = () => undefined;
  }
  globalThis.connection = await connect(url, { target: "game", protocol: "raknet", timeoutMs: 60_000, silenceTimeoutMs: 60_000, ...settings });
  // Must equal the kinds of the game server.
  globalThis.kinds = { ECHO: 0, COUNT: 1, TELL: 2, DOWNLOAD: 3 };
  globalThis.sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  globalThis.message = (length, kind, ...more) => {
    const bytes = new Uint8Array(length).fill(0xfe);
    bytes.set([kind, ...more], 1);
    return bytes;
  };
  globalThis.numberIn = (bytes) => new DataView(bytes.buffer, bytes.byteOffset).getUint32(2, true);
  globalThis.megabits = (bytes, ms) => (8 * bytes) / ms / 1_000;
  globalThis.resent = ({ datagramsLost, datagramsLate }) => datagramsLost + datagramsLate;
}

/** Runs in the page: measures round trips of messages at the rate of a game. */
async function roundTrips([milliseconds, tickMs]) {
  const [sent, trips] = [[], []];
  connection.onMessage = ({ bytes }) => trips.push(performance.now() - sent[numberIn(bytes)]);
  for (const end = performance.now() + milliseconds; performance.now() < end; ) {
    const bytes = message(100, kinds.ECHO);
    new DataView(bytes.buffer).setUint32(2, sent.length, true);
    sent.push(performance.now());
    connection.send(bytes, { reliability: "reliable-ordered" });
    await sleep(tickMs);
  }
  for (const end = performance.now() + 30_000; trips.length < sent.length && performance.now() < end; ) {
    await sleep(10);
  }
  trips.sort((a, b) => a - b);
  const at = (share) => trips[Math.min(trips.length - 1, Math.floor(trips.length * share))];
  return { p50_ms: at(0.5), p99_ms: at(0.99), missing: sent.length - trips.length, resent: resent(connection.stats()) };
}

/** Runs in the page: measures the throughput from the page to the game server. */
async function upload([milliseconds]) {
  let [isOver, asks] = [false, false];
  // This loop fills the send memory. It therefore also sends the queries, which would otherwise fail with `queue-full`.
  const sending = (async () => {
    while (!isOver) {
      await connection.ready({ length: 1_200 });
      if (asks) {
        connection.send(message(2, kinds.TELL), { reliability: "reliable", priority: "immediate" });
        asks = false;
      } else {
        connection.send(message(1_200, kinds.COUNT), { reliability: "reliable" });
      }
    }
  })();
  const counted = async () => {
    const told = new Promise((resolve) => (connection.onMessage = ({ bytes }) => resolve(numberIn(bytes))));
    asks = true;
    return [await told, performance.now()];
  };
  // Excludes slow start from the measurement.
  await sleep(milliseconds / 2);
  const before = await counted();
  await sleep(milliseconds);
  const after = await counted();
  isOver = true;
  await sending;
  const stats = connection.stats();
  return { up_mbit: megabits(after[0] - before[0], after[1] - before[1]), resent_share: resent(stats) / stats.datagramsSent };
}

/** Runs in the page: measures the throughput from the game server to the page. */
async function download([milliseconds]) {
  let moved = 0;
  const began = new Promise((resolve) => {
    connection.onMessage = ({ bytes }) => {
      moved += bytes.length;
      resolve();
    };
  });
  // Longer than the measurement.
  const time = milliseconds * 2;
  connection.send(message(4, kinds.DOWNLOAD, time & 0xff, time >> 8), { reliability: "reliable" });
  await began;
  await sleep(milliseconds / 2);
  const [before, since] = [moved, performance.now()];
  await sleep(milliseconds);
  return { down_mbit: megabits(moved - before, performance.now() - since) };
}

/**
 * Runs one measurement with its own page and connection. On a shared connection, it would first have to wait for the
 * data that the previous measurement buffered, which may be megabytes and take a minute.
 */
async function measured(browser, url, opening, measure, time) {
  const context = await browser.newContext();
  try {
    const page = await context.newPage();
    page.setDefaultTimeout(300_000);
    await page.goto(url);
    await page.evaluate(open, opening);
    return await page.evaluate(measure, time);
  } finally {
    await context.close();
  }
}

async function main([relay, transport, profile, milliseconds]) {
  await withBrowser(async (browser, url) => {
    const { webrtc } = await (await fetch(`http://${relay}/transports`)).json();
    const options = { transport, ...(transport === "webrtc" && { fingerprint: webrtc.fingerprint }), profile };
    const opening = [`ws://${relay}/ws`, options];
    const results = {};
    for (const measure of [roundTrips, upload, download]) {
      Object.assign(results, await measured(browser, url, opening, measure, [Number(milliseconds), TICK_MS]));
    }
    console.log(JSON.stringify(results));
  });
}

await main(process.argv.slice(2)).catch((error) => console.log(`failed: ${String(error).replaceAll("\n", " ")}`));
