/** Everything around the world: who plays, how well one is, and the panel between games. */

import type { ConnectionStats } from "rakwire";

import { element, make } from "../dom.js";
import { colourOf } from "./figures.js";
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
  readonly #health = element("health", HTMLParagraphElement);
  readonly #hint = element("hint", HTMLParagraphElement);
  readonly #title = element("panel-title", HTMLHeadingElement);
  readonly #words = element("panel-words", HTMLParagraphElement);
  readonly #play = element("play", HTMLButtonElement);
  readonly #last = new Map<Node, string>();

  /** Sets what the page is doing, in a word for everything that looks and in words for people. */
  set(state: State, words: string): void {
    document.body.dataset["state"] = state;
    this.#text(this.#status, words);
    const isPlaying = state === "playing";
    element("veil", HTMLDivElement).hidden = isPlaying;
    element("players-card", HTMLElement).hidden = !isPlaying;
    element("vitals", HTMLElement).hidden = !isPlaying;
    element("touch", HTMLDivElement).hidden = !(isPlaying && matchMedia("(pointer: coarse)").matches);
    if (!isPlaying) {
      this.#text(this.#title, TITLES[state]);
      this.#text(this.#words, words);
      this.#play.disabled = state === "connecting";
      this.#text(this.#play, state === "start" || state === "connecting" ? "Play" : "Play again");
      this.#play.focus();
    }
  }

  get state(): State {
    return document.body.dataset["state"] as State;
  }

  /** Lists the players, the most alive first. */
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
      this.#text(this.#health, inHearts(own));
      this.#health.setAttribute("aria-label", `health ${own.health} of ${own.mostHealth}`);
    }
    this.#text(this.#hint, hint);
  }

  showNumbers(roundTripMs: number | undefined, snapshots: number, stats: ConnectionStats): void {
    const trip = roundTripMs === undefined ? "–" : `${roundTripMs.toFixed(0)} ms`;
    this.#text(this.#numbers, `${trip} · ${snapshots} snapshots/s · ${(stats.bytesReceived / 1e6).toFixed(1)} MB`);
  }

  #text(node: HTMLElement, words: string): void {
    if (this.#last.get(node) !== words) {
      this.#last.set(node, words);
      node.textContent = words;
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
  health.setAttribute("aria-label", `health ${player.health} of ${player.mostHealth}`);
  item.append(colour, name, health);
  return item;
}
