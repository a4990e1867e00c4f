// A simulated player, which presses keys, clicks, drags the stick, and reads the state of the page.

import { installPilot } from "./pilot.mjs";
import { UNANSWERED } from "./unanswered.mjs";

export const byId = (page, id) => page.getByTestId(id);

const KEYS = { north: "KeyW", west: "KeyA", south: "KeyS", east: "KeyD" };
/** Drags of the stick in window coordinates. */
const DRAGS = { north: [0, -1], west: [-1, 0], south: [0, 1], east: [1, 0] };
const POLL_MS = 50;
const LONGEST_MS = 180_000;
const WALK_MS = 15_000;
/** The time limit of one of several attempts. */
const TRY_MS = 10_000;
/** The distance from which an object can be broken, in tiles. */
const NEAR = 1.6;
/** The distance of a throw in tiles, so short that no obstacle fits in between. */
const RANGE = 1.3;
/** The distance that counts as walked, in tiles. */
const WALKED = 1;
const THROWS = 40;

/**
 * Runs in the page: collects the round-trip times of its connection, and those of the game, which include the page's
 * own frames.
 */
function installMeter() {
  const trips = { connection: [], game: [] };
  setInterval(() => {
    const { stats, roundTripMs } = window.snowfight;
    if (document.body.dataset.state === "playing" && stats?.roundTripMs > 0 && roundTripMs !== undefined) {
      trips.connection.push(stats.roundTripMs);
      trips.game.push(roundTripMs);
    }
  }, 50);
  const percentiles = (values) => {
    const sorted = values.toSorted((a, b) => a - b);
    const at = (share) => Math.round(10 * (sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0)) / 10;
    return { p50: at(0.5), p99: at(0.99) };
  };
  window.meter = () => ({
    round_trip_ms: { connection: percentiles(trips.connection), game: percentiles(trips.game) },
    relay_drops: window.snowfight.stats?.relayDrops,
  });
}

export class Player {
  #page;

  constructor(page) {
    this.#page = page;
  }

  get page() {
    return this.#page;
  }

  /** Clicks the button to play, and waits until the game has started or failed. */
  async join(transport, scope = "changes", secure = false) {
    await this.#page.evaluate(installPilot);
    await byId(this.#page, `transport-${transport}`).check();
    if (secure) {
      await byId(this.#page, "secure").check();
    }
    await byId(this.#page, `scope-${scope}`).check();
    await this.#connect();
    await this.until(() => pilot.me() !== undefined, "the page shows its own player");
    await this.#page.evaluate(installMeter);
  }

  /**
   * Clicks the button to play until the game has started. A handshake may time out if pages are drawn without a GPU.
   */
  async #connect() {
    for (let attempts = 3; (await this.state()) !== "playing"; attempts--) {
      await byId(this.#page, "play").click();
      await this.until(() => !["start", "connecting"].includes(pilot.state()), "the player has joined or was refused");
      const reason = await byId(this.#page, "status").textContent();
      if ((await this.state()) !== "playing" && (attempts === 1 || !UNANSWERED.test(reason))) {
        throw new Error(reason);
      }
    }
  }

  /** Returns the transfer mode of the world, as the page shows it. */
  async world() {
    const numbers = byId(this.#page, "numbers");
    await this.until(() => /B\/s/.test(document.querySelector("#numbers").textContent), "the page shows the transfer mode of the world");
    return numbers.textContent();
  }

  /** Returns the page's description of its secure connection; empty for a plain connection. */
  async lock() {
    const lock = byId(this.#page, "lock");
    return (await lock.isVisible()) ? lock.innerText() : "";
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

  /** Waits for a condition on the page. */
  async until(done, what, argument) {
    try {
      await this.#page.waitForFunction(done, argument, { polling: POLL_MS, timeout: LONGEST_MS });
    } catch (error) {
      const seen = await this.#page.evaluate(() => {
        const { player, scene } = window.snowfight;
        return { player, state: document.body.dataset.state, players: scene.filter(({ kind }) => kind === "player") };
      });
      throw new Error(`timed out while waiting until ${what} (${error.message.split("\n")[0]}): ${JSON.stringify(seen)}`);
    }
  }

  /** Walks with the given input. Tries four directions, because obstacles may block some of them. */
  async #walkBy(begin, end) {
    const start = await this.me();
    for (const way of ["east", "north", "west", "south"]) {
      await begin(way);
      const far = ({ start, distance }) => pilot.me() === undefined || Math.hypot(pilot.me().x - start.x, pilot.me().y - start.y) > distance;
      const moved = await this.#page.waitForFunction(far, { start, distance: WALKED }, { polling: POLL_MS, timeout: TRY_MS }).catch(() => undefined);
      await end(way);
      if (moved !== undefined) {
        const after = await this.me();
        return { before: { x: start.x, y: start.y }, after: { x: after.x, y: after.y } };
      }
    }
    throw new Error("the player did not move in any of four directions");
  }

  /** Walks with the keyboard. */
  walkByKeys() {
    const keyboard = this.#page.keyboard;
    return this.#walkBy((way) => keyboard.down(KEYS[way]), (way) => keyboard.up(KEYS[way]));
  }

  /** Walks with the touch stick. */
  async walkByStick() {
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

  /** Breaks a nearby object loose with the keyboard, and returns its id. */
  async gather() {
    for (const end = Date.now() + LONGEST_MS; Date.now() < end; ) {
      if ((await this.#walk("nearest", NEAR)) !== "there") {
        continue;
      }
      await this.#page.keyboard.down("Space");
      const holds = () => pilot.state() !== "playing" || pilot.me()?.holding !== undefined;
      const held = await this.#page.waitForFunction(holds, undefined, { polling: POLL_MS, timeout: TRY_MS }).catch(() => undefined);
      await this.#page.keyboard.up("Space");
      if (held !== undefined) {
        return (await this.me())?.holding;
      }
    }
    throw new Error("the player broke no object loose");
  }

  /** Throws the held object at the other player by a click. */
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
      const done = await this.#page.waitForFunction(thrown, undefined, { polling: POLL_MS, timeout: TRY_MS }).catch(() => undefined);
      if (done !== undefined) {
        return;
      }
    }
    throw new Error("the player did not throw the held object");
  }

  #walk(what, near) {
    return this.#page.evaluate(([what, near, limit]) => pilot.walk(what, near, limit), [what, near, WALK_MS]);
  }
}

/** The transfer modes of the winner and of the loser, by the kind of game. */
const WAYS = { game: ["changes", "whole"], raknet: ["changes", "changes"], replication: ["replication", "replication"] };

/**
 * Plays a whole game with a protocol or with replication: the first player throws at the second until it has lost.
 * Returns a record of the game.
 */
export async function fight(winner, loser, way, picture = async () => {}) {
  const transport = way === "game" ? "game" : "raknet";
  const record = { transport, hits: [], throws: 0 };
  const [ofWinner, ofLoser] = WAYS[way];
  // With RakNet, the winner uses a secure connection and the loser a plain one.
  await winner.join(transport, ofWinner, transport === "raknet");
  record.lock = await winner.lock();
  await loser.join(transport, ofLoser);
  record.world = await loser.world();
  await winner.until(() => pilot.other() !== undefined, "the page of the winner shows the loser");
  Object.assign(record, await winner.walkByKeys());
  record.touch = await loser.walkByStick();
  let health = (await loser.me()).health;
  while (record.throws < THROWS && (await loser.state()) === "playing") {
    const held = await winner.gather();
    const { id } = await winner.me();
    if (record.holder === undefined) {
      // The loser's page shows that the winner holds the object.
      const sees = ({ id, held }) => pilot.entity(id)?.holding === held;
      await loser.until(sees, "the page of the loser shows the held object", { id, held });
      record.holder = id;
      record.held = held;
      await picture("held");
    }
    await winner.throwAtOther();
    record.throws += 1;
    await loser.until((held) => pilot.state() !== "playing" || pilot.entity(held) === undefined, "the thrown object has disappeared or the game is over", held);
    const left = (await loser.state()) === "playing" ? ((await loser.me())?.health ?? 0) : 0;
    if (left < health) {
      record.hits.push({ from: health, to: left });
      await picture(`hit-${record.hits.length}`);
    }
    health = left;
  }
  record.damage = record.hits.reduce((sum, { from, to }) => sum + from - to, 0);
  for (const [player, expected] of [[winner, "won"], [loser, "lost"]]) {
    await player.until(() => pilot.state() !== "playing", "the game is over");
    record[expected] = { state: await player.state(), title: await byId(player.page, "panel-title").textContent() };
  }
  const measured = await winner.page.evaluate(() => ({ correction: snowfight.largestCorrection, coarseness: snowfight.coarseness }));
  Object.assign(record, measured);
  record.pages = await Promise.all([winner, loser].map(({ page }) => page.evaluate(() => window.meter())));
  await picture("over");
  return record;
}
