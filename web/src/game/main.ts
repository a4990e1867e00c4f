/** The page of the game: joins, plays, and shows how the game ended. */

import "./style.css";
import type { ConnectionStats } from "rakwire";

import init, { Game, WorldUpdates } from "../../../snowfight/wasm/pkg/snowfight_wasm.js";

import { element } from "../dom.js";
import { Controls } from "./controls.js";
import { World } from "./draw.js";
import type { Spot } from "./draw.js";
import { Hud } from "./hud.js";
import type { State } from "./hud.js";
import { Net } from "./net.js";
import type { Transport } from "./net.js";
import { readScene } from "./scene.js";
import type { Figure } from "./scene.js";

const FRAME_MS = 1_000 / 60;
/** The longest backlog in milliseconds that is simulated after a pause, as in the server (docs/game.md#timing). */
const MAX_BACKLOG_MS = 1_000;
const NUMBERS_MS = 1_000;
/** The time limit in milliseconds for the server's answer to a join request. */
const JOIN_TIMEOUT_MS = 15_000;
/** The distance at which objects can be broken, in tiles. */
const REACH = 2;
/** The control that breaks objects loose: a key, or a button on touch screens. */
const BREAK_KEY = matchMedia("(pointer: coarse)").matches ? "Break" : "Space";
/** The height above the feet of a player at which throws aim, in tiles. */
const CHEST = 0.65;

const stage = element("stage", HTMLDivElement);
const hud = new Hud();
const controls = new Controls(stage);

/** The transfer modes of the world, by the choice in the panel. */
const UPDATES: Readonly<Record<string, WorldUpdates>> = {
  changes: WorldUpdates.Changes,
  whole: WorldUpdates.Whole,
  replication: WorldUpdates.Replication,
};

/** One game, from joining to the result. */
interface Round {
  game: Game;
  net: Net | undefined;
  scene: Figure[];
}

let world: World | undefined;
let round: Round | undefined;
let target: Figure | undefined;
let lastFrame = performance.now();

const own = (): Figure | undefined =>
  round?.scene.find(({ kind, owner }) => kind === "player" && owner === round?.game.player);

const distance = (a: Figure, b: Figure): number => Math.hypot(a.x - b.x, a.y - b.y, a.z - b.z);

/** Returns the nearest object within reach that can be broken. */
function withinReach(me: Figure | undefined): Figure | undefined {
  if (me === undefined || me.holding !== undefined) {
    return undefined;
  }
  const near = (round?.scene ?? []).filter(
    (figure) => figure.kind !== "player" && figure.durability !== undefined && distance(figure, me) < REACH,
  );
  return near.sort((a, b) => distance(a, me) - distance(b, me))[0];
}

/** Returns the target of a press in the window: a player's chest, or the ground. */
function aim(at: Spot): { x: number; y: number; z: number } | undefined {
  if (world === undefined || round === undefined) {
    return undefined;
  }
  const me = own();
  const { x, y } = world.groundAt(at);
  const hit = round.scene.find(
    (figure) => figure.kind === "player" && figure.id !== me?.id && Math.abs(figure.x - x) < 0.6 && y - figure.y > -0.5 && y - figure.y < 1.5,
  );
  return hit === undefined ? { x, y, z: 0 } : { x: hit.x, y: hit.y, z: CHEST };
}

function hint(me: Figure | undefined): string {
  if (me?.holding !== undefined) {
    return "Click or tap where it should land.";
  }
  if (target !== undefined) {
    return controls.isBreaking ? `Breaking a ${target.kind} loose …` : `Hold ${BREAK_KEY} to break the ${target.kind} loose.`;
  }
  return "Walk to a tree or a mushroom.";
}

/** Runs a frame of a sixtieth of a second. */
function frame(playing: Round): void {
  const me = own();
  target = withinReach(me);
  const press = controls.takePress();
  const thrown = me?.holding !== undefined && press !== undefined ? aim(press) : undefined;
  const breaking = controls.isBreaking ? target?.id : undefined;
  playing.game.frame(performance.now(), controls.movement, breaking, thrown?.x, thrown?.y, thrown?.z);
  playing.net?.flush();
}

function runFrames(): void {
  const now = performance.now();
  lastFrame = Math.max(lastFrame, now - MAX_BACKLOG_MS);
  const begun = lastFrame;
  for (; now - lastFrame >= FRAME_MS; lastFrame += FRAME_MS) {
    if (round !== undefined && hud.state === "playing") {
      frame(round);
    }
  }
  if (round !== undefined && hud.state === "playing" && lastFrame > begun) {
    round.scene = readScene(round.game.scene());
  }
}

function draw(): void {
  requestAnimationFrame(draw);
  if (round === undefined) {
    world?.draw([], undefined, undefined);
  } else {
    const me = own();
    world?.draw(round.scene, me, hud.state === "playing" ? target : undefined);
    hud.showPlayers(round.scene, round.game.player);
    hud.showSlowness(world?.isSlow === true);
    hud.showVitals(me, hint(me));
  }
}

function chosen(name: string): string {
  return (document.querySelector(`input[name="${name}"]:checked`) as HTMLInputElement).value;
}

async function play(): Promise<void> {
  const transport = chosen("transport") as Transport;
  const protocolName = transport === "game" ? "the Game Protocol" : "RakNet";
  const isSecure = element("secure", HTMLInputElement).checked;
  hud.set("connecting", `Connecting with ${protocolName} …`);
  hud.showLock(undefined);
  controls.release();
  round?.net?.close();
  const updates = UPDATES[chosen("scope")] ?? WorldUpdates.Whole;
  const game = new Game(updates);
  const playing: Round = { game, net: undefined, scene: [] };
  round = playing;
  const is = (...states: State[]): boolean => round === playing && states.includes(hud.state);
  const over = (state: "won" | "lost" | "failed", reason: string): void => {
    if (is("playing", "connecting")) {
      hud.set(state, reason);
    }
  };
  const fail = (reason: string): void => {
    over("failed", reason);
    playing.net?.close();
  };
  const joinTimer = setTimeout(() => {
    if (is("connecting")) {
      fail(`The server has not answered for ${JOIN_TIMEOUT_MS / 1_000} seconds. Try again, or use the other protocol.`);
    }
  }, JOIN_TIMEOUT_MS);
  const onJoined = (player: number): void => {
    clearTimeout(joinTimer);
    if (is("connecting")) {
      hud.set("playing", `You are player ${player}, over ${protocolName}.`);
    }
  };
  try {
    playing.net = await Net.open(game, transport, isSecure, {
      onJoined,
      onWon: () => over("won", "You are the last one standing."),
      onLost: () => over("lost", "You were hit three times."),
      onRejected: (reason) => fail(`The server rejected you: ${reason}.`),
      onClosed: (reason) => over("failed", `The connection was closed: ${reason}.`),
    });
    if (is("connecting", "playing")) {
      hud.showLock(playing.net.secure);
    } else {
      // The attempt was cancelled or replaced while it connected.
      playing.net.close();
    }
  } catch (error) {
    over("failed", error instanceof Error ? `${error.message}.` : String(error));
  }
}

interface Counts {
  shown: number;
  bytes: number;
}

function showNumbers(before: Counts): void {
  const stats = round?.net?.stats();
  const now = { shown: round?.game.snapshots ?? 0, bytes: stats?.bytesReceived ?? 0 };
  if (round !== undefined && stats !== undefined && hud.state === "playing") {
    const perSecond = { shown: Math.max(0, now.shown - before.shown), bytes: Math.max(0, now.bytes - before.bytes) };
    hud.showNumbers(round.game.roundTripMs, round.game.isReplicated, perSecond, stats);
  }
  setTimeout(() => showNumbers(now), NUMBERS_MS);
}

/** The state of the page for tests and debugging. */
export interface Probe {
  readonly player: number | undefined;
  /** The tick of the shown snapshot. */
  readonly time: number;
  readonly roundTripMs: number | undefined;
  readonly stats: ConnectionStats | undefined;
  readonly scene: readonly Figure[];
  readonly largestCorrection: number;
  readonly coarseness: number;
  screenOf(figure: { x: number; y: number; z?: number }): Spot | undefined;
}
declare global {
  interface Window {
    snowfight: Probe;
  }
}
window.snowfight = {
  get player() {
    return round?.game.player;
  },
  get time() {
    return round?.game.time ?? 0;
  },
  get roundTripMs() {
    return round?.game.roundTripMs;
  },
  get stats() {
    return round?.net?.stats();
  },
  get scene() {
    return round?.scene ?? [];
  },
  get largestCorrection() {
    return round?.game.largestCorrection ?? 0;
  },
  get coarseness() {
    return world?.coarseness ?? 0;
  },
  screenOf: (figure) => world?.screenOf(figure),
};

/** The Game Protocol has neither secure connections nor replication. */
function followProtocol(): void {
  const isGame = chosen("transport") === "game";
  const [secure, replication] = ["secure", "replication"].map((id) => element(id, HTMLInputElement)) as [HTMLInputElement, HTMLInputElement];
  secure.disabled = replication.disabled = isGame;
  secure.checked &&= !isGame;
  if (isGame && replication.checked) {
    element("changes", HTMLInputElement).checked = true;
  }
}

async function start(): Promise<void> {
  followProtocol();
  document.querySelectorAll('input[name="transport"]').forEach((input) => input.addEventListener("change", followProtocol));
  element("panel", HTMLFormElement).addEventListener("submit", (event) => {
    event.preventDefault();
    void play();
  });
  addEventListener("pagehide", () => round?.net?.close());
  await init();
  // Allows joining before the drawing code has loaded, so that a slow start of drawing does not delay the connection.
  document.body.dataset["ready"] = "yes";
  setInterval(runFrames, FRAME_MS / 2);
  showNumbers({ shown: 0, bytes: 0 });
  world = await World.start(stage);
  document.body.dataset["drawn"] = "yes";
  requestAnimationFrame(draw);
}

start().catch((error: unknown) => {
  round?.net?.close();
  hud.set("failed", `This browser cannot show the game: ${error instanceof Error ? error.message : String(error)}`);
});
