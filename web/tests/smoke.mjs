// Usage: smoke.mjs URL PICTURE. One connect-send-echo on the running demo; the outcome is one line of JSON.

import { setTimeout as sleep } from "node:timers/promises";

import { launch } from "../../wasm/tests/browser.mjs";
import { byId, connectPage, echoed, pageState } from "./driver.mjs";

const MESSAGES = 5;
const PLOT_MS = 2000;

async function drive(page, url, picture, outcome) {
  await page.goto(url);
  const { state, words } = await connectPage(page);
  outcome.connected = state === "connected";
  if (!outcome.connected) {
    throw new Error(words);
  }
  for (let number = 1; number <= MESSAGES; number++) {
    await byId(page, "text").fill(`Message ${number} of the smoke test`);
    await byId(page, "send").click();
    await echoed(page, number);
  }
  await sleep(PLOT_MS);
  const entries = await echoed(page, MESSAGES);
  await page.screenshot({ path: picture });
  outcome.echoed = entries.length;
  outcome.rtt_ms_median = Number.parseFloat(await byId(page, "stat-median").textContent());
  const after = await pageState(page);
  if (after.state !== "connected") {
    throw new Error(after.words);
  }
}

const [url, picture] = process.argv.slice(2);
if (picture === undefined) {
  console.error("usage: smoke.mjs URL PICTURE");
  process.exit(2);
}
const outcome = { connected: false };
let browser;
try {
  browser = await launch();
  await drive(await browser.newPage({ viewport: { width: 1280, height: 800 } }), url, picture, outcome);
} catch (error) {
  outcome.error = error.message;
} finally {
  await browser?.close();
}
console.log(JSON.stringify(outcome));
process.exit(outcome.error === undefined ? 0 : 1);
