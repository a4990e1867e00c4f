// The examples as they are built, in Chromium, with a real relay and a real server.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { before, test } from "node:test";

import { SOFTWARE_WEBGL, launch } from "../../wasm/tests/browser.mjs";
import { serve } from "../../wasm/tests/bundlers/serve.mjs";
import { startEcho, startRelay } from "../../wasm/tests/support.mjs";

const HERE = fileURLToPath(new URL(".", import.meta.url));
/** Where a picture of each is left. */
const PICTURES = fileURLToPath(new URL("../../target/examples", import.meta.url));
const ECHOES = 20;

before(() => {
  execFileSync("npm", ["run", "build"], { cwd: HERE, stdio: ["ignore", "ignore", "inherit"] });
  mkdirSync(PICTURES, { recursive: true });
});

for (const example of ["canvas", "phaser", "pixi", "three"]) {
  test(`${example}: the page hears from a server where its player is`, { timeout: 300_000 }, async (t) => {
    const echo = await startEcho(t);
    const relay = await startRelay(t, { echo: echo.address });
    const pages = await serve(`${HERE}dist`);
    t.after(() => pages.stop());
    const browser = await launch(SOFTWARE_WEBGL);
    t.after(() => browser.close());
    const page = await browser.newPage({ viewport: { width: 700, height: 480 } });
    page.setDefaultTimeout(120_000);
    const errors = [];
    page.on("pageerror", (error) => errors.push(error.message));
    const address = new URL(`${example}/index.html?relay=${encodeURIComponent(`ws://${relay.address}/ws`)}`, pages.url);
    await page.goto(address.href);
    const heard = (count) => Number(document.body.dataset.heard ?? 0) >= count;
    await page.waitForFunction(heard, ECHOES).catch((error) => errors.push(error.message));
    await page.screenshot({ path: `${PICTURES}/${example}.png` });
    assert.deepEqual(errors, []);
    const size = await page.evaluate(() => {
      const { width, height } = document.querySelector("#stage canvas");
      return width * height;
    });
    assert.ok(size > 0, "there is nothing to see");
  });
}
