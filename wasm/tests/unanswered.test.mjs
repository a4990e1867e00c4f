// Connections in browsers that lose their carrier, through a relay that accepts the next carrier but never answers.
// They continue over a third carrier, and can be closed.

import assert from "node:assert/strict";
import { test } from "node:test";

import { openPage } from "./browser.mjs";
import { serveTable } from "./failures/page.mjs";
import { openFirefox } from "./firefox.mjs";
import { WAYS, nameOf } from "./leave.mjs";
import { startEcho, startRelay } from "./support.mjs";
import { unanswered } from "./unanswered.mjs";
import { startWay } from "./way.mjs";

const EXPECTED = { "goes on": ["interrupted", "resumed", "close", "local"], "ends when it is closed": ["interrupted", "close", "local"] };

async function check(t, way, evaluate) {
  const echo = await startEcho(t);
  const relay = await startRelay(t, { game: echo.address }, "--allow-any-origin");
  const { url, control } = await startWay(t, relay, way.transport);
  const seen = {};
  for (const what of Object.keys(EXPECTED)) {
    seen[what] = JSON.parse(await evaluate(unanswered(url, way, control, what !== "goes on")));
  }
  assert.deepEqual(seen, EXPECTED);
}

for (const way of WAYS) {
  test(`a connection in Chromium continues if its next transport is accepted but unresponsive: ${nameOf(way)}`, async (t) => {
    const page = await openPage(t);
    const home = await serveTable(t);
    await check(t, way, (expression) => page.goto(home).then(() => page.evaluate(expression)));
  });

  // The path to the relay has a loopback address, at which Firefox does not use data channels.
  test(`a connection in Firefox continues if its next transport is accepted but unresponsive: ${nameOf(way)}`, { skip: way.transport === "webrtc" }, async (t) => {
    const firefox = await openFirefox();
    t.after(() => firefox.close());
    const home = await serveTable(t);
    await check(t, way, (expression) => firefox.textOf(home, expression));
  });
}
