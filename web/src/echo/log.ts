/** The list of sent messages, each with what became of it. */

import type { Reliability } from "rakwire";

import { element, make } from "../dom.js";

const MOST_ENTRIES = 100;
const MOST_SHOWN = 60;

interface Way {
  reliability: Reliability;
  channel: number;
}

export class Log {
  readonly #list = element("log", HTMLOListElement);
  readonly #hint = element("log-hint", HTMLParagraphElement);
  #echoed = 0;

  /** Adds a message that waits for its echo. */
  sent(text: string, { reliability, channel }: Way): HTMLElement {
    const entry = make("li", "", "");
    entry.dataset["testid"] = "entry";
    entry.dataset["outcome"] = "waiting";
    const length = new TextEncoder().encode(text).length + 1;
    const words = text.length > MOST_SHOWN ? `${text.slice(0, MOST_SHOWN)}…` : text;
    const way = `${reliability}, channel ${channel}, ${length.toLocaleString("en")} ${length === 1 ? "byte" : "bytes"}`;
    entry.append(make("span", "words", words), make("span", "way", way), make("span", "outcome", "waiting for its echo"));
    this.#list.prepend(entry);
    this.#hint.hidden = true;
    while (this.#list.childElementCount > MOST_ENTRIES) {
      this.#list.lastElementChild?.remove();
    }
    return entry;
  }

  echoed(entry: HTMLElement, roundTripMs: number): void {
    entry.dataset["roundTripMs"] = String(roundTripMs);
    entry.dataset["order"] = String(++this.#echoed);
    settle(entry, "echoed", `echoed in ${roundTripMs.toFixed(1)} ms`);
  }

  failed(entry: HTMLElement, reason: string): void {
    settle(entry, "failed", `not sent: ${reason}`);
  }

  /** What still waits will never be answered. */
  giveUp(): void {
    for (const entry of this.#list.querySelectorAll<HTMLElement>('[data-outcome="waiting"]')) {
      settle(entry, "lost", "no echo");
    }
  }
}

function settle(entry: HTMLElement, outcome: string, words: string): void {
  entry.dataset["outcome"] = outcome;
  const place = entry.querySelector(".outcome");
  if (place !== null) {
    place.textContent = words;
  }
}
