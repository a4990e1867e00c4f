/** The display around the world: the list of players, the health of this player, and the panel between games. */

import type { ConnectionStats } from "rakwire";

import { element, make } from "../dom.js";
import { colourOf } from "./figures.js";
import type { SecureServer } from "./net.js";
import { hearts } from "./scene.js";
import type { Figure } from "./scene.js";

export type State = "start" | "connecting" | "playing" | "won" | "lost" | "failed";

const TITLES: Readonly<Record<State, string>> = {
  start: "Join the fight",
  connecting: "Connecting …",
  playing: "",
  won: "You won!",
  lost: "You lost",
  failed: "No game",
};

export class Hud {
  readonly #status = element("status", HTMLParagraphElement);
  readonly #players = element("players", HTMLOListElement);
  readonly #numbers = element("numbers", HTMLParagraphElement);
  readonly #slow = element("slow", HTMLParagraphElement);
  readonly #lock = element("lock", HTMLParagraphElement);
  readonly #lockText = element("lock-text", HTMLSpanElement);
  readonly #health = element("health", HTMLParagraphElement);
  readonly #hint = element("hint", HTMLParagraphElement);
  readonly #title = element("panel-title", HTMLHeadingElement);
  readonly #panelText = element("panel-text", HTMLParagraphElement);
  readonly #play = element("play", HTMLButtonElement);
  readonly #last = new Map<Node, string>();

  /** Sets the state of the page, and its text. */
  set(state: State, text: string): void {
    document.body.dataset["state"] = state;
    this.#setText(this.#status, text);
    const isPlaying = state === "playing";
    element("veil", HTMLDivElement).hidden = isPlaying;
    element("players-card", HTMLElement).hidden = !isPlaying;
    element("vitals", HTMLElement).hidden = !isPlaying;
    element("touch", HTMLDivElement).hidden = !(isPlaying && matchMedia("(pointer: coarse)").matches);
    if (!isPlaying) {
      this.#setText(this.#title, TITLES[state]);
      this.#setText(this.#panelText, text);
      this.#play.disabled = state === "connecting";
      this.#setText(this.#play, state === "start" || state === "connecting" ? "Play" : "Play again");
      this.#play.focus();
    }
  }

  get state(): State {
    return document.body.dataset["state"] as State;
  }

  /** Lists the players, those with the most health first. */
  showPlayers(scene: readonly Figure[], own: number | undefined): void {
    const players = scene.filter(({ kind }) => kind === "player");
    players.sort((a, b) => b.health - a.health || a.owner - b.owner);
    const key = players.map(({ owner, health, holding }) => `${owner}:${health}:${holding !== undefined}`).join();
    if (this.#last.get(this.#players) === key) {
      return;
    }
    this.#last.set(this.#players, key);
    this.#players.replaceChildren(...players.map((player) => row(player, player.owner === own)));
  }

  showVitals(own: Figure | undefined, hint: string): void {
    if (own !== undefined) {
      this.#setText(this.#health, inHearts(own));
      this.#health.setAttribute("aria-label", `health ${own.health} of ${own.maxHealth}`);
    }
    this.#setText(this.#hint, hint);
  }

  /** Shows or hides the notice that drawing is slow and the game is not affected. */
  showSlowness(isSlow: boolean): void {
    this.#slow.hidden = !isSlow;
  }

  /** Shows a lock for a secure connection, and hides it otherwise. */
  showLock(secure: SecureServer | undefined): void {
    this.#lock.hidden = secure === undefined;
    if (secure !== undefined) {
      this.#setText(this.#lockText, secure.isNamed ? "Encrypted; server verified" : "Encrypted; server unverified");
      this.#lock.title = secure.server.key;
    }
  }

  /** Shows the transfer mode of the world, the updates shown in the last second, and the bytes of the connection. */
  showNumbers(roundTripMs: number | undefined, isReplicated: boolean, perSecond: { shown: number; bytes: number }, stats: ConnectionStats): void {
    // The first round-trip time is that of the connection. The second one, that of the game, includes the page's own
    // frames.
    const game = roundTripMs === undefined ? "–" : `${roundTripMs.toFixed(0)} ms`;
    const roundTrips = `${stats.roundTripMs.toFixed(0)} ms (game ${game})`;
    const world = isReplicated ? "Replication" : "Snapshots";
    const bytes = `${(perSecond.bytes / 1e3).toFixed(1)} kB/s (${(stats.bytesReceived / 1e6).toFixed(1)} MB)`;
    this.#setText(this.#numbers, `${roundTrips} · ${world}: ${perSecond.shown}/s, ${bytes}`);
  }

  #setText(node: HTMLElement, text: string): void {
    if (this.#last.get(node) !== text) {
      this.#last.set(node, text);
      node.textContent = text;
    }
  }
}

function inHearts(player: Figure): string {
  const { full, most } = hearts(player);
  return "♥".repeat(full) + "♡".repeat(most - full);
}

function row(player: Figure, isOwn: boolean): HTMLElement {
  const item = make("li", "player", "");
  item.dataset["owner"] = String(player.owner);
  item.dataset["health"] = String(player.health);
  const colour = make("span", "colour", "");
  colour.style.background = `#${colourOf(player.owner).toString(16).padStart(6, "0")}`;
  const hands = player.holding === undefined ? "" : " · armed";
  const name = make("span", "name", (isOwn ? `You, P${player.owner}` : `P${player.owner}`) + hands);
  const health = make("span", "hearts", inHearts(player));
  health.setAttribute("aria-label", `health ${player.health} of ${player.maxHealth}`);
  item.append(colour, name, health);
  return item;
}
