// Somebody who plays on the page: presses keys and clicks, and looks at what the page shows.

import { setTimeout as sleep } from "node:timers/promises";

export const byId = (page, id) => page.getByTestId(id);

const KEYS = { north: "KeyW", west: "KeyA", south: "KeyS", east: "KeyD" };
const POLL_MS = 50;
const LONGEST_MS = 90_000;
/** How near one goes to break something. */
const NEAR = 1.6;
/** How near one goes to throw: not so near that a tree can be between. */
const RANGE = 2.5;
const THROWS = 40;

export class Player {
  #page;
  #down = new Set();

  constructor(page) {
    this.#page = page;
  }

  get page() {
    return this.#page;
  }

  /** Presses play, and waits until the game has begun or could not. */
  async join(transport, scope) {
    await byId(this.#page, `transport-${transport}`).check();
    if (scope === "whole") {
      await byId(this.#page, "scope-whole").check();
    }
    await byId(this.#page, "play").click();
    await this.#page.waitForFunction(() => !["start", "connecting"].includes(document.body.dataset.state), null, { timeout: 30_000 });
    const state = await this.state();
    if (state !== "playing") {
      throw new Error(await byId(this.#page, "status").textContent());
    }
    await this.until(async () => (await this.me()) !== undefined, "sees itself");
  }

  state() {
    return this.#page.evaluate(() => document.body.dataset.state);
  }

  look() {
    // Of three hundred things only those near by are carried out of the page: to look must not be what slows it down.
    return this.#page.evaluate(() => {
      const { player, scene } = window.snowfight;
      const me = scene.find(({ kind, owner }) => kind === "player" && owner === player) ?? { x: 0, y: 0 };
      const matters = ({ kind, durability }) => kind === "player" || durability === undefined;
      const far = ({ x, y }) => Math.hypot(x - me.x, y - me.y);
      const near = scene.filter((figure) => !matters(figure)).sort((a, b) => far(a) - far(b));
      return { player, scene: [...scene.filter(matters), ...near.slice(0, 5)] };
    });
  }

  async me() {
    const { player, scene } = await this.look();
    return scene.find(({ kind, owner }) => kind === "player" && owner === player);
  }

  async other() {
    const { player, scene } = await this.look();
    return scene.find(({ kind, owner }) => kind === "player" && owner !== player);
  }

  async until(done, what) {
    for (const end = Date.now() + LONGEST_MS; Date.now() < end; await sleep(POLL_MS)) {
      if (await done()) {
        return;
      }
    }
    const { player, scene } = await this.look();
    const bodies = scene.filter(({ kind }) => kind === "player");
    throw new Error(`player ${player} never ${what}: ${await this.state()}, ${JSON.stringify(bodies)}`);
  }

  async press(...ways) {
    for (const way of Object.keys(KEYS)) {
      const wanted = ways.includes(way);
      if (wanted !== this.#down.has(way)) {
        await this.#page.keyboard[wanted ? "down" : "up"](KEYS[way]);
        this.#down[wanted ? "add" : "delete"](way);
      }
    }
  }

  /** Walks until it is this near; around what is in the way, a step aside. */
  async approach(find, near) {
    let last;
    let stuck = 0;
    await this.until(async () => {
      const { player, scene } = await this.look();
      const me = scene.find(({ kind, owner }) => kind === "player" && owner === player);
      const goal = me && find(scene, me);
      if (goal === undefined || Math.hypot(goal.x - me.x, goal.y - me.y) < near) {
        return true;
      }
      stuck = last && Math.hypot(me.x - last.x, me.y - last.y) < 0.01 ? stuck + 1 : 0;
      last = me;
      const [x, y] = [goal.x - me.x, goal.y - me.y];
      if (stuck > 5) {
        await this.press(Math.abs(x) > Math.abs(y) ? (stuck % 20 < 10 ? "north" : "south") : stuck % 20 < 10 ? "east" : "west");
        await sleep(150);
        return false;
      }
      const along = (distance, forth, back) => (distance > 0.2 ? [forth] : distance < -0.2 ? [back] : []);
      await this.press(...along(x, "east", "west"), ...along(y, "north", "south"));
      return false;
    }, "gets there");
    await this.press();
  }

  /** Breaks the nearest thing loose that it can get at, and gives its id. */
  async gather() {
    const nearest = (scene, me) =>
      scene
        .filter(({ kind, durability }) => kind !== "player" && durability !== undefined)
        .sort((a, b) => Math.hypot(a.x - me.x, a.y - me.y) - Math.hypot(b.x - me.x, b.y - me.y))[0];
    await this.until(async () => {
      await this.approach(nearest, NEAR);
      // A keyboard repeats; and a window that lost its focus for a moment has let go of every key.
      await this.#page.keyboard.down("Space");
      return (await this.me())?.holding !== undefined;
    }, "breaks anything loose");
    await this.#page.keyboard.up("Space");
    return (await this.me()).holding;
  }

  /** Throws what it holds at the other player, by a click. */
  async throwAtOther() {
    const enemy = (scene, me) => scene.find(({ kind, id }) => kind === "player" && id !== me.id);
    await this.approach(enemy, RANGE);
    const other = await this.other();
    if (other === undefined) {
      return;
    }
    const at = await this.#page.evaluate((figure) => window.snowfight.screenOf({ ...figure, z: 0.4 }), other);
    await this.#page.mouse.click(at.x, at.y);
    await this.until(async () => (await this.state()) !== "playing" || (await this.me())?.holding === undefined, "throws");
  }
}

/** A whole game: the first throws at the second until that has lost. What happened is told piece by piece. */
export async function fight(winner, loser, transport, picture = async () => {}) {
  const told = { transport, hits: [] };
  await winner.join(transport);
  // Both kinds of snapshots are played with.
  await loser.join(transport, transport === "game" ? "whole" : "changes");
  await winner.until(async () => (await winner.other()) !== undefined, "sees the other");
  const { x, y } = await winner.me();
  await walkSomewhere(winner);
  const after = await winner.me();
  told.before = { x, y };
  told.after = { x: after.x, y: after.y };
  let health = (await loser.me()).health;
  for (let thrown = 0; thrown < THROWS && (await loser.state()) === "playing"; thrown++) {
    const held = await winner.gather();
    const { id } = await winner.me();
    if (told.holder === undefined) {
      // The other one sees who holds it.
      await loser.until(async () => (await loser.look()).scene.some((figure) => figure.id === id && figure.holding === held), "sees it held");
      told.holder = id;
      told.held = held;
      await picture("held");
    }
    await winner.throwAtOther();
    const seen = async () => ((await loser.state()) === "playing" ? ((await loser.me())?.health ?? 0) : 0);
    await loser.until(async () => !(await loser.look()).scene.some((figure) => figure.id === held) || (await loser.state()) !== "playing", "sees it land");
    const left = await seen();
    if (left < health) {
      told.hits.push({ from: health, to: left });
      await picture(`hit-${told.hits.length}`);
    }
    health = left;
  }
  told.damage = told.hits.reduce((sum, { from, to }) => sum + from - to, 0);
  for (const [player, expected] of [[winner, "won"], [loser, "lost"]]) {
    await player.until(async () => (await player.state()) !== "playing", "ends");
    told[expected] = { state: await player.state(), title: await byId(player.page, "panel-title").textContent() };
  }
  told.correction = await winner.page.evaluate(() => window.snowfight.largestCorrection);
  await picture("over");
  return told;
}

/** Whatever stands in one way does not in all. */
async function walkSomewhere(player) {
  const start = await player.me();
  const far = async () => {
    const me = await player.me();
    return Math.hypot(me.x - start.x, me.y - start.y) > 1;
  };
  for (const way of ["east", "north", "west", "south"]) {
    await player.press(way);
    await sleep(500);
    await player.press();
    if (await far()) {
      return;
    }
  }
  throw new Error("it cannot move in any direction");
}
