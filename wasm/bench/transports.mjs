// Measures one transport of the package in Chromium: round trips of small messages, and then how much a busy connection moves.
// Prints one line of JSON. `cargo xtask bench transports` starts it behind a path with latency and loss.

import { withBrowser } from "./pages.mjs";

/** How often a game sends. */
const TICK_MS = 1_000 / 60;

/** Runs in the page. The numbers behind the first byte are those of the game server. */
async function measure([url, options, milliseconds, tickMs]) {
  const [{ connect }, { Session }] = await Promise.all([import("/dist/index.js"), import("/dist/session.js")]);
  const { profile, ...settings } = options;
  if (profile === "datagrams") {
    // As if the WebSocket lost datagrams.
    Session.prototype.onCarrier = () => undefined;
  }
  const connection = await connect(url, { target: "game", protocol: "raknet", timeoutMs: 60_000, silenceTimeoutMs: 60_000, ...settings });
  const [ECHO, COUNT, TELL, DOWNLOAD] = [0, 1, 2, 3];
  const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  const message = (length, kind, ...more) => {
    const bytes = new Uint8Array(length).fill(0xfe);
    bytes.set([kind, ...more], 1);
    return bytes;
  };
  const numberIn = (bytes) => new DataView(bytes.buffer, bytes.byteOffset).getUint32(2, true);

  const [sent, trips] = [[], []];
  connection.onMessage = ({ bytes }) => trips.push(performance.now() - sent[numberIn(bytes)]);
  for (const end = performance.now() + milliseconds; performance.now() < end; ) {
    const bytes = message(100, ECHO);
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
  const quiet = connection.stats();

  const counted = async () => {
    const told = new Promise((resolve) => (connection.onMessage = ({ bytes }) => resolve(numberIn(bytes))));
    const isSent = () => {
      try {
        return connection.send(message(2, TELL), { reliability: "reliable", priority: "immediate" }) === undefined;
      } catch {
        return false;
      }
    };
    // The other sender takes all room that there is.
    while (!isSent()) {
      await sleep(1);
    }
    return [await told, performance.now()];
  };
  let isOver = false;
  const sending = (async () => {
    while (!isOver) {
      await connection.ready({ length: 1_200 });
      connection.send(message(1_200, COUNT), { reliability: "reliable" });
    }
  })();
  // What comes before is the start of congestion control.
  await sleep(milliseconds / 2);
  const before = await counted();
  await sleep(milliseconds);
  const after = await counted();
  isOver = true;
  await sending;
  const busy = connection.stats();
  for (const end = performance.now() + 30_000; connection.bufferedAmount > 0 && performance.now() < end; ) {
    await sleep(10);
  }

  let moved = 0;
  connection.onMessage = ({ bytes }) => (moved += bytes.length);
  const time = milliseconds * 1.5;
  connection.send(message(4, DOWNLOAD, time & 0xff, time >> 8), { reliability: "reliable" });
  await sleep(milliseconds / 2);
  const [movedBefore, began] = [moved, performance.now()];
  await sleep(milliseconds * 0.9);
  const megabits = (bytes, ms) => (8 * bytes) / ms / 1_000;
  return {
    p50_ms: at(0.5),
    p99_ms: at(0.99),
    missing: sent.length - trips.length,
    resent: quiet.datagramsLost,
    up_mbit: megabits(after[0] - before[0], after[1] - before[1]),
    down_mbit: megabits(moved - movedBefore, performance.now() - began),
    resent_share: (busy.datagramsLost - quiet.datagramsLost) / (busy.datagramsSent - quiet.datagramsSent),
  };
}

async function main([relay, transport, profile, milliseconds]) {
  await withBrowser(async (browser, url) => {
    const page = await browser.newPage();
    page.setDefaultTimeout(300_000);
    await page.goto(url);
    const { webrtc } = await (await fetch(`http://${relay}/transports`)).json();
    const options = { transport, ...(transport === "webrtc" && { fingerprint: webrtc.fingerprint }), profile };
    console.log(JSON.stringify(await page.evaluate(measure, [`ws://${relay}/ws`, options, Number(milliseconds), TICK_MS])));
  });
}

await main(process.argv.slice(2)).catch((error) => console.log(`failed: ${String(error).replaceAll("\n", " ")}`));
