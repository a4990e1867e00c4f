// On a slow machine, the connection waits neither for the drawing code nor for drawing.

import assert from "node:assert/strict";
import { test } from "node:test";

import { openPage, SOFTWARE_WEBGL } from "./browser.mjs";
import { byId, Player } from "./game.mjs";
import { startGame } from "./start-game.mjs";

const SMALL = { viewport: { width: 360, height: 480 } };
/** The drawing code is in separate scripts, which load once the game can be joined. */
const DRAWING = /\/assets\/.*All-[^/]*\.js$/;

test("a player joins before the drawing code has loaded", async (t) => {
  const url = await startGame(t);
  const page = await openPage(t, SMALL, SOFTWARE_WEBGL);
  let [askFor, letCome] = [];
  const asked = new Promise((resolve) => (askFor = resolve));
  const come = new Promise((resolve) => (letCome = resolve));
  await page.route(DRAWING, async (route) => {
    askFor();
    await come;
    await route.continue();
  });
  await page.goto(url);
  await asked;
  await new Player(page).join("game");
  const states = () => page.evaluate(() => [document.body.dataset.state, document.body.dataset.drawn]);
  assert.deepEqual(await states(), ["playing", undefined]);
  letCome();
  await page.waitForFunction(() => document.body.dataset.drawn === "yes");
  assert.deepEqual(await states(), ["playing", "yes"]);
});

test("a page that draws two frames a second joins and shows a notice", async (t) => {
  const url = await startGame(t);
  const page = await openPage(t, SMALL, SOFTWARE_WEBGL);
  await page.addInitScript(() => {
    const { requestAnimationFrame } = window;
    // Blocks the page's thread in each frame for as long as drawing without a GPU takes.
    const draws = (run) => (time) => {
      for (const end = performance.now() + 250; performance.now() < end; );
      run(time);
    };
    window.requestAnimationFrame = (run) => requestAnimationFrame(draws(run));
  });
  await page.goto(url);
  await page.waitForFunction(() => document.body.dataset.drawn === "yes");
  await new Player(page).join("game");
  await byId(page, "slow").waitFor();
  assert.equal(await page.evaluate(() => document.body.dataset.state), "playing");
});
