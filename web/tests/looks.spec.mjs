// The built pages on a desktop and on a phone, in light and dark: accessibility, and no text that is cut off.

import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { test } from "node:test";

import { assertAccessible } from "./axe.mjs";
import { openPage, SOFTWARE_WEBGL } from "./browser.mjs";
import { Player } from "./game.mjs";
import { startGame } from "./start-game.mjs";
import { startEcho, startRelay } from "./support.mjs";

const PAGE = fileURLToPath(new URL("../dist", import.meta.url));

const DEVICES = {
  desktop: { viewport: { width: 1_280, height: 800 } },
  phone: { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true },
};

/** The number of other players in a game, for a long list. */
const OTHERS = 7;

/** For each page, a function that waits until it shows its content. */
const PAGES = {
  "index.html": (page) => page.locator('[data-ready="yes"]').waitFor(),
  "echo.html": (page) => page.getByTestId("connect").waitFor(),
  "overhead.html": (page) => page.locator("tr[data-mode]").first().waitFor(),
  "servers.html": (page) => page.locator(".state.unresponsive").waitFor(),
};

/** Returns the elements with text that exceeds their own edge or that of the window. */
function cutOff() {
  const isShown = (element) => element.checkVisibility() && getComputedStyle(element).clipPath === "none";
  const texts = [...document.querySelectorAll("h1, h2, p, a, label, legend, td, th, dd, button, li")].filter(isShown);
  const isCut = (element) => {
    const { left, right } = element.getBoundingClientRect();
    return element.scrollWidth > element.clientWidth + 1 && getComputedStyle(element).display !== "inline" ? true : left < -1 || right > innerWidth + 1;
  };
  return texts.filter(isCut).map(({ outerHTML }) => outerHTML.slice(0, 120));
}

/** Returns true if the players' card is filled as in a game. Some players may have lost by now. */
function isCardFull() {
  return document.querySelectorAll("#players li").length > 2 && /B\/s/.test(document.querySelector("#numbers").textContent);
}

/** Returns the visible elements that overlap another element or exceed the edge of the window. */
function overlapping() {
  const placed = [...document.querySelectorAll(".bar, .card, #stick, #grab")].filter((element) => element.checkVisibility());
  const boxes = placed.map((element) => [element, element.getBoundingClientRect()]);
  const isOver = (one, other) => one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom;
  const isOverEdge = ({ left, right, top, bottom }) => left < 0 || top < 0 || right > innerWidth || bottom > innerHeight;
  const found = boxes.filter(([, box], index) => isOverEdge(box) || boxes.slice(index + 1).some(([, other]) => isOver(box, other)));
  return found.map(([{ outerHTML }]) => outerHTML.slice(0, 120));
}

/**
 * Returns elements that cover the own player, its hearts or its name, which reach up to two and a half times its
 * height.
 */
function coveringTheOwnPlayer() {
  const { scene, player, screenOf } = window.snowfight;
  const own = scene.find(({ kind, owner }) => kind === "player" && owner === player);
  const feet = screenOf(own);
  const tile = screenOf({ ...own, x: own.x + 1 }).x - feet.x;
  const isOver = (element) => {
    const { left, right, top, bottom } = element.getBoundingClientRect();
    return left < feet.x + tile / 2 && right > feet.x - tile / 2 && top < feet.y && bottom > feet.y - 2 * tile;
  };
  const above = [...document.querySelectorAll(".bar, .card, .touch > *")].filter((element) => element.checkVisibility());
  return above.filter(isOver).map(({ outerHTML }) => outerHTML.slice(0, 120));
}

for (const [device, options] of Object.entries(DEVICES)) {
  for (const colorScheme of ["light", "dark"]) {
    test(`on a ${device}, ${colorScheme}, a player sees itself, nothing is cut off, and axe finds no problems`, async (t) => {
      const url = await startGame(t, OTHERS);
      const page = await openPage(t, { ...options, colorScheme, reducedMotion: "reduce" }, SOFTWARE_WEBGL);
      await page.goto(`${url}?quality=low`);
      await page.waitForFunction(() => document.body.dataset.drawn === "yes");
      const player = new Player(page);
      await player.join("game");
      await player.until(isCardFull, "the page shows other players and the transfer mode of the world");
      assert.deepEqual(await page.evaluate(coveringTheOwnPlayer), []);
      assert.deepEqual(await page.evaluate(overlapping), []);
      assert.deepEqual(await page.evaluate(cutOff), []);
      await assertAccessible(page, "while playing");
    });
  }
}

test("in the narrowest window, a status of several lines does not overlap the players", async (t) => {
  const url = await startGame(t, OTHERS);
  const page = await openPage(t, { viewport: { width: 320, height: 640 }, reducedMotion: "reduce" }, SOFTWARE_WEBGL);
  await page.goto(`${url}?quality=low`);
  await page.waitForFunction(() => document.body.dataset.drawn === "yes");
  const player = new Player(page);
  let isPlaying = false;
  for (const number of [7, 123]) {
    let found;
    // A bot may end the game of this player, and the page then shows its panel.
    for (let attempts = 5; found === undefined && attempts > 0; attempts--) {
      if (!isPlaying) {
        await player.join("game");
      }
      await player.until(isCardFull, "the page shows other players and the transfer mode of the world");
      await page.getByTestId("status").evaluate((status, text) => (status.textContent = text), `You are player ${number}, over the Game Protocol.`);
      const measured = [...(await page.evaluate(overlapping)), ...(await page.evaluate(cutOff))];
      isPlaying = (await player.state()) === "playing";
      found = isPlaying ? measured : undefined;
    }
    assert.deepEqual(found, [], `player ${number}`);
  }
});

for (const [device, options] of Object.entries(DEVICES)) {
  for (const colorScheme of ["light", "dark"]) {
    test(`on a ${device}, ${colorScheme}, nothing of a page is cut off, and axe finds no problems`, async (t) => {
      const echo = await startEcho(t, "--advertise", "MCPE;A snow world with a long name;594;1.20.13;3;20;");
      const relay = await startRelay(t, { arena: `${echo.address},kind=raknet`, dead: "127.0.0.1:1,kind=raknet" }, "--serve", PAGE);
      const page = await openPage(t, { ...options, colorScheme }, SOFTWARE_WEBGL);
      for (const [name, shown] of Object.entries(PAGES)) {
        await page.goto(`http://${relay.address}/${name}`);
        await shown(page);
        assert.deepEqual(await page.evaluate(cutOff), [], name);
        await assertAccessible(page, name);
        if (process.env.LOOKS) {
          await page.screenshot({ path: `${process.env.LOOKS}/${device}-${colorScheme}-${name}.png`, fullPage: true });
        }
      }
    });
  }
}

test("the help shows the controls of the device", async (t) => {
  const relay = await startRelay(t, { nobody: "127.0.0.1:1" }, "--serve", PAGE);
  for (const [device, expected] of [["desktop", [true, false]], ["phone", [false, true]]]) {
    const page = await openPage(t, DEVICES[device], SOFTWARE_WEBGL);
    await page.goto(`http://${relay.address}/`);
    const shown = await Promise.all([".keyboard", ".fingers"].map((kind) => page.locator(kind).isVisible()));
    assert.deepEqual(shown, expected, device);
  }
});

test("the status of a server list counts the servers that do not answer", async (t) => {
  const echo = await startEcho(t);
  const relay = await startRelay(t, { arena: `${echo.address},kind=raknet`, dead: "127.0.0.1:1,kind=raknet" }, "--serve", PAGE);
  const page = await openPage(t);
  await page.goto(`http://${relay.address}/servers.html`);
  await page.locator('[data-state="partly"]', { hasText: "2 servers, 1 online, one does not answer." }).waitFor();
});
