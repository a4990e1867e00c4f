/** The list of sent messages and their outcomes. */

import type { Reliability } from "rakwire";

import { element, make } from "../dom.js";

const MAX_ENTRIES = 100;
const MAX_SHOWN = 60;

interface Delivery {
  reliability: Reliability;
  channel: number;
}

export class Log {
  readonly #list = element("log", HTMLOListElement);
  readonly #hint = element("log-hint", HTMLParagraphElement);
  #echoed = 0;

  /** Adds a message that waits for its echo. */
  sent(text: string, { reliability, channel }: Delivery): HTMLElement {
    const entry = make("li", "", "");
    entry.dataset["testid"] = "entry";
    entry.dataset["outcome"] = "waiting";
    const length = new TextEncoder().encode(text).length + 1;
    const shown = text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
    const delivery = `${reliability}, channel ${channel}, ${length.toLocaleString("en")} ${length === 1 ? "byte" : "bytes"}`;
    entry.append(make("span", "text", shown), make("span", "delivery", delivery), make("span", "outcome", "waiting for its echo"));
    this.#list.prepend(entry);
    this.#hint.hidden = true;
    while (this.#list.childElementCount > MAX_ENTRIES) {
      this.#list.lastElementChild?.remove();
    }
    return entry;
  }

  echoed(entry: HTMLElement, roundTripMs: number): void {
    entry.dataset["roundTripMs"] = String(roundTripMs);
    entry.dataset["order"] = String(++this.#echoed);
    setOutcome(entry, "echoed", `echoed in ${roundTripMs.toFixed(1)} ms`);
  }

  failed(entry: HTMLElement, reason: string): void {
    setOutcome(entry, "failed", `not sent: ${reason}`);
  }

  /** Marks all messages without an echo as lost. */
  markLost(): void {
    for (const entry of this.#list.querySelectorAll<HTMLElement>('[data-outcome="waiting"]')) {
      setOutcome(entry, "lost", "no echo");
    }
  }
}

function setOutcome(entry: HTMLElement, outcome: string, text: string): void {
  entry.dataset["outcome"] = outcome;
  const cell = entry.querySelector(".outcome");
  if (cell !== null) {
    cell.textContent = text;
  }
}
