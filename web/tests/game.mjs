// Somebody who plays on the page: presses keys, clicks, drags with a finger, and looks at what the page shows.

import { installPilot } from "./pilot.mjs";

export const byId = (page, id) => page.getByTestId(id);

const KEYS = { north: "KeyW", west: "KeyA", south: "KeyS", east: "KeyD" };
/** Which way a finger goes on the stick, as the window counts. */
const DRAGS = { north: [0, -1], west: [-1, 0], south: [0, 1], east: [1, 0] };
const POLL_MS = 50;
const LONGEST_MS = 60_000;
const WALK_MS = 15_000;
/** How near one goes to break something. */
const NEAR = 1.6;
/** How near one goes to throw: nothing has room between. */
const RANGE = 1.3;
/** A way that was gone. */
const WAY = 1;
const THROWS = 40;

export class Player {
  #page;

  constructor(page) {
    this.#page = page;
  }

  get page() {
    return this.#page;
  }

  /** Presses play, and waits until the game has begun or could not. */
  async join(transport, scope) {
    await this.#page.evaluate(installPilot);
    await byId(this.#page, `transport-${transport}`).check();
    if (scope === "whole") {
      await byId(this.#page, "scope-whole").check();
    }
    await byId(this.#page, "play").click();
    await this.until(() => !["start", "connecting"].includes(pilot.state()), "is let in or turned away");
    const state = await this.state();
    if (state !== "playing") {
      throw new Error(await byId(this.#page, "status").textContent());
    }
    await this.until(() => pilot.me() !== undefined, "sees itself");
  }

  state() {
    return this.#page.evaluate(() => pilot.state());
  }

  me() {
    return this.#page.evaluate(() => pilot.me());
  }

  other() {
    return this.#page.evaluate(() => pilot.other());
  }

  /** Waits for something that can be seen in the page. */
  async until(done, what, argument) {
    try {
      await this.#page.waitForFunction(done, argument, { polling: POLL_MS, timeout: LONGEST_MS });
    } catch (error) {
      const seen = await this.#page.evaluate(() => {
        const { player, scene } = window.snowfight;
        return { player, state: document.body.dataset.state, players: scene.filter(({ kind }) => kind === "player") };
      });
      throw new Error(`it never ${what} (${error.message.split("\n")[0]}): ${JSON.stringify(seen)}`);
    }
  }

  /** Walks some way by what it is given to press; whatever stands in one way does not in all. */
  async #walkBy(begin, end) {
    const start = await this.me();
    for (const way of ["east", "north", "west", "south"]) {
      await begin(way);
      const far = ({ start, way }) => pilot.me() === undefined || Math.hypot(pilot.me().x - start.x, pilot.me().y - start.y) > way;
      const moved = await this.#page.waitForFunction(far, { start, way: WAY }, { polling: POLL_MS, timeout: 3_000 }).catch(() => undefined);
      await end(way);
      if (moved !== undefined) {
        const after = await this.me();
        return { before: { x: start.x, y: start.y }, after: { x: after.x, y: after.y } };
      }
    }
    throw new Error("it cannot move in any direction");
  }

  /** Walks some way by the keyboard. */
  walkByKeys() {
    const keyboard = this.#page.keyboard;
    return this.#walkBy((way) => keyboard.down(KEYS[way]), (way) => keyboard.up(KEYS[way]));
  }

  /** Walks some way by a finger on the stick. */
  async walkByFinger() {
    const session = await this.#page.context().newCDPSession(this.#page);
    const { x, y, width } = await this.#page.locator("#stick").boundingBox();
    const centre = { x: x + width / 2, y: y + width / 2 };
    const touch = (type, points) => session.send("Input.dispatchTouchEvent", { type, touchPoints: points });
    const begin = async (way) => {
      const [right, below] = DRAGS[way];
      await touch("touchStart", [centre]);
      await touch("touchMove", [{ x: centre.x + (right * width) / 3, y: centre.y + (below * width) / 3 }]);
    };
    const walked = await this.#walkBy(begin, () => touch("touchEnd", []));
    await session.detach();
    return walked;
  }

  /** Breaks something loose near by, by the keyboard, and gives its id. */
  async gather() {
    for (const end = Date.now() + LONGEST_MS; Date.now() < end; ) {
      if ((await this.#walk("nearest", NEAR)) !== "there") {
        continue;
      }
      await this.#page.keyboard.down("Space");
      const holds = () => pilot.state() !== "playing" || pilot.me()?.holding !== undefined;
      const held = await this.#page.waitForFunction(holds, undefined, { polling: POLL_MS, timeout: 5_000 }).catch(() => undefined);
      await this.#page.keyboard.up("Space");
      if (held !== undefined) {
        return (await this.me())?.holding;
      }
    }
    throw new Error("it never breaks anything loose");
  }

  /** Throws what it holds at the other player, by a click. */
  async throwAtOther() {
    for (const end = Date.now() + LONGEST_MS; Date.now() < end; ) {
      if ((await this.#walk("other", RANGE)) !== "there") {
        if ((await this.state()) !== "playing" || (await this.other()) === undefined) {
          return;
        }
        continue;
      }
      const at = await this.#page.evaluate(() => pilot.other() && window.snowfight.screenOf({ ...pilot.other(), z: 0.4 }));
      if (at === undefined) {
        return;
      }
      await this.#page.mouse.click(at.x, at.y);
      const thrown = () => pilot.state() !== "playing" || pilot.me()?.holding === undefined;
      const done = await this.#page.waitForFunction(thrown, undefined, { polling: POLL_MS, timeout: 5_000 }).catch(() => undefined);
      if (done !== undefined) {
        return;
      }
    }
    throw new Error("it never throws");
  }

  #walk(what, near) {
    return this.#page.evaluate(([what, near, limit]) => pilot.walk(what, near, limit), [what, near, WALK_MS]);
  }
}

/** A whole game: the first throws at the second until that has lost. What happened is told piece by piece. */
export async function fight(winner, loser, transport, picture = async () => {}) {
  const told = { transport, hits: [], throws: 0 };
  await winner.join(transport);
  // Both kinds of snapshots are played with.
  await loser.join(transport, transport === "game" ? "whole" : "changes");
  await winner.until(() => pilot.other() !== undefined, "sees the other");
  Object.assign(told, await winner.walkByKeys());
  told.touch = await loser.walkByFinger();
  let health = (await loser.me()).health;
  while (told.throws < THROWS && (await loser.state()) === "playing") {
    const held = await winner.gather();
    const { id } = await winner.me();
    if (told.holder === undefined) {
      // The other one sees who holds it.
      const sees = ({ id, held }) => pilot.entity(id)?.holding === held;
      await loser.until(sees, "sees it held", { id, held });
      told.holder = id;
      told.held = held;
      await picture("held");
    }
    await winner.throwAtOther();
    told.throws += 1;
    await loser.until((held) => pilot.state() !== "playing" || pilot.entity(held) === undefined, "sees it land", held);
    const left = (await loser.state()) === "playing" ? ((await loser.me())?.health ?? 0) : 0;
    if (left < health) {
      told.hits.push({ from: health, to: left });
      await picture(`hit-${told.hits.length}`);
    }
    health = left;
  }
  told.damage = told.hits.reduce((sum, { from, to }) => sum + from - to, 0);
  for (const [player, expected] of [[winner, "won"], [loser, "lost"]]) {
    await player.until(() => pilot.state() !== "playing", "ends");
    told[expected] = { state: await player.state(), title: await byId(player.page, "panel-title").textContent() };
  }
  const measured = await winner.page.evaluate(() => ({ correction: snowfight.largestCorrection, coarseness: snowfight.coarseness }));
  Object.assign(told, measured);
  await picture("over");
  return told;
}
