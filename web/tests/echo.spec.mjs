// The built echo page in Chromium, behind a real relay, with real servers.

import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { test } from "node:test";

import { openPage } from "./browser.mjs";
import { byId, connectPage, echoed, pageState } from "./echo.mjs";
import { startCpp, startEcho, startRelay } from "./support.mjs";
import { UNANSWERED } from "./unanswered.mjs";

const PAGE = fileURLToPath(new URL("../dist", import.meta.url));

async function open(t, targets, options) {
  assert.ok(existsSync(`${PAGE}/index.html`), "build the page first: npm run build");
  const relay = await startRelay(t, targets, "--serve", PAGE);
  const page = await openPage(t, options);
  const pageErrors = [];
  page.on("pageerror", (error) => pageErrors.push(error.message));
  t.after(() => assert.deepEqual(pageErrors, [], "errors of the page"));
  await page.goto(`http://${relay.address}/echo.html`);
  return { page, relay };
}

async function send(page, text) {
  await byId(page, "text").fill(text);
  await byId(page, "send").click();
}

/** Sends a text repeatedly, because it may be lost, until its echo arrives. Returns the echo. */
async function sendUntilEchoed(page, text) {
  for (let time = 0; time < 10; time++) {
    await send(page, text);
    const entry = byId(page, "entry").and(page.locator('[data-outcome="echoed"]')).first();
    const isThere = await entry.waitFor({ timeout: 6_000 }).then(() => true, () => false);
    if (isThere) {
      return { text: await entry.textContent() };
    }
  }
  throw new Error("no text was echoed in 10 attempts");
}

test("the page connects to a rakwire server, sends messages and shows their echoes", async (t) => {
  const echo = await startEcho(t);
  const { page } = await open(t, { echo: echo.address });
  assert.equal((await pageState(page)).state, "empty");
  assert.deepEqual(await connectPage(page), {
    state: "connected",
    text: "Connected to “echo” with protocol 6.",
  });
  await byId(page, "reliability").selectOption("unreliable-sequenced");
  await byId(page, "channel").fill("7");
  const entry = await sendUntilEchoed(page, "Grüße ☃");
  assert.match(entry.text, /Grüße ☃unreliable-sequenced, channel 7, 12 bytesechoed in [\d.]+ ms/);
  await page.waitForFunction(() => Number(document.querySelector("#plot").dataset.points) > 15);
  assert.match(await byId(page, "stat-rtt").textContent(), /^[\d.]+ ms$/);
  assert.match(await byId(page, "stat-median").textContent(), /^[\d.]+ ms$/);
  // On a busy machine late datagrams may count as lost.
  assert.match(await byId(page, "stat-lost").textContent(), /^\d+$/);
  await byId(page, "disconnect").click();
  await page.waitForFunction(() => document.body.dataset.state === "closed");
  assert.equal((await pageState(page)).text, "Disconnected.");
  assert.equal((await connectPage(page)).state, "connected");
});

test("the page exchanges ordered and split messages with a C++ server", async (t) => {
  const cpp = await startCpp(t);
  const { page } = await open(t, { cpp: cpp.address });
  assert.equal((await connectPage(page, { target: "cpp" })).state, "connected");
  const texts = ["one", "two", "three"];
  for (const text of texts) {
    await send(page, text);
  }
  await byId(page, "send-long").click();
  await send(page, "five");
  const entries = await echoed(page, 5);
  assert.deepEqual(entries.map(({ order }) => order), [1, 2, 3, 4, 5]);
  // An echo counts only if it is identical to the sent text.
  assert.match(entries[3].text, /131,073 bytes/);
});

test("the page connects to a C++ server with protocol version 11", async (t) => {
  const cpp = await startCpp(t, "--protocol", "11");
  const { page } = await open(t, { cpp: cpp.address });
  assert.equal((await connectPage(page, { target: "cpp", protocol: "11" })).state, "connected");
  await send(page, "hello");
  await echoed(page, 1);
});

test("for an unknown target, the page shows the error of the relay", async (t) => {
  const { page } = await open(t, { echo: "127.0.0.1:9" });
  const { state, text } = await connectPage(page, { target: "castle" });
  assert.equal(state, "failed");
  assert.match(text, /unknown target 'castle'; this relay offers: echo/);
});

test("the page reports a server that is not running, and cancels an attempt", async (t) => {
  const { page } = await open(t, { echo: "127.0.0.1:9" });
  // Clicks within the page, because a command from the test may take long to arrive.
  const state = await page.evaluate(() => {
    document.querySelector("[data-testid=connect]").click();
    return document.body.dataset.state;
  });
  assert.equal(state, "connecting");
  await page.waitForFunction(() => document.body.dataset.state === "failed");
  assert.match((await pageState(page)).text, UNANSWERED);
  await page.evaluate(() => {
    document.querySelector("[data-testid=connect]").click();
    document.querySelector("[data-testid=disconnect]").click();
  });
  await page.waitForFunction(() => document.body.dataset.state === "closed");
  assert.equal((await pageState(page)).text, "Cancelled.");
});

test("a relay that is killed closes the connection with a reason", async (t) => {
  const echo = await startEcho(t);
  const { page, relay } = await open(t, { echo: echo.address });
  assert.equal((await connectPage(page)).state, "connected");
  relay.stop();
  // Over WebTransport the page needs some seconds to detect the loss, and then tries to resume its flow for half a
  // minute.
  await page.waitForFunction(() => document.body.dataset.state === "closed", null, { timeout: 180_000 });
  assert.match((await pageState(page)).text, /connection to the relay lost \(code 1006\)/);
});

for (const width of [360, 800]) {
  test(`the page fits a window of ${width} pixels`, async (t) => {
    const echo = await startEcho(t);
    const { page } = await open(t, { echo: echo.address }, { viewport: { width, height: 740 } });
    assert.equal((await connectPage(page)).state, "connected");
    await byId(page, "send-long").click();
    await echoed(page, 1);
    const { scroll, client } = await page.evaluate(() => ({
      scroll: document.documentElement.scrollWidth,
      client: document.documentElement.clientWidth,
    }));
    assert.equal(scroll, client);
  });
}

test("the page works with the keyboard only", async (t) => {
  const echo = await startEcho(t);
  const { page } = await open(t, { echo: echo.address });
  await byId(page, "target").focus();
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.body.dataset.state === "connected");
  await byId(page, "text").focus();
  await page.keyboard.press("Enter");
  await echoed(page, 1);
  await byId(page, "disconnect").focus();
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.body.dataset.state === "closed");
  assert.equal(await page.evaluate(() => document.activeElement?.id), "connect");
});
