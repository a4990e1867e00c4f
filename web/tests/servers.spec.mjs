// The built servers page in Chromium, behind a real relay with real servers.

import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { test } from "node:test";

import { openPage } from "./browser.mjs";
import { LIMIT_MS, startCpp, startEcho, startRelay } from "./support.mjs";

const PAGE = fileURLToPath(new URL("../dist", import.meta.url));

async function open(t, targets) {
  const relay = await startRelay(t, targets, "--serve", PAGE);
  const page = await openPage(t);
  const pageErrors = [];
  page.on("pageerror", (error) => pageErrors.push(error.message));
  t.after(() => assert.deepEqual(pageErrors, [], "errors of the page"));
  await page.goto(`http://${relay.address}/servers.html`);
  return { page, relay };
}

const row = (page, name) => page.locator(`tr[data-name="${name}"]`);

async function shows(page, name, state) {
  await row(page, name).locator(".state", { hasText: state }).waitFor();
  return row(page, name).locator("td").allTextContents();
}

test("the page shows the relay's servers and their advertisements", async (t) => {
  const echo = await startEcho(t, "--advertise", "MCPE;§aSnow world;594;1.20.13;3;20;");
  const cpp = await startCpp(t);
  const { page } = await open(t, {
    arena: `${echo.address},kind=raknet`,
    cpp: `${cpp.address},kind=raknet`,
    other: "127.0.0.1:1",
  });
  const [state, players, ping, protocol, version] = await shows(page, "arena", "online");
  assert.deepEqual([state, players, protocol, version], ["online", "3 / 20", "RakNet", "1.20.13"]);
  assert.match(ping, /^[\d.]+ ms$/);
  assert.equal(await row(page, "arena").locator(".title").textContent(), "Snow world");
  await shows(page, "cpp", "online");
  assert.deepEqual(await shows(page, "other", "not known"), ["not known", "–", "–", "other", "–"]);
  // Waits, because a slow server may temporarily count as offline.
  const isComplete = () => document.querySelector('[data-testid="status"]').textContent === "3 servers, 2 online.";
  await page.waitForFunction(isComplete, undefined, { timeout: LIMIT_MS });
});

test("the page shows that a server or a relay has stopped", async (t) => {
  const echo = await startEcho(t);
  const { page, relay } = await open(t, { arena: `${echo.address},kind=raknet` });
  await shows(page, "arena", "online");
  echo.stop();
  await shows(page, "arena", "no answer");
  relay.stop();
  // The state alone does not tell them apart: it is "failed" already when no server answers.
  await page.getByTestId("status").filter({ hasText: "returned no list of servers" }).waitFor();
  assert.equal(await page.evaluate(() => document.body.dataset.state), "failed");
});
