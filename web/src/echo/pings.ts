/** Small messages with the time in them, several times a second. */

import type { Echoes } from "./echoes.js";
import type { Line } from "./line.js";
import type { Plot } from "./plot.js";

const INTERVAL_MS = 100;

export class Pings {
  isOn = true;
  readonly #line: Line;
  readonly #echoes: Echoes;
  readonly #plot: Plot;

  constructor(line: Line, echoes: Echoes, plot: Plot) {
    this.#line = line;
    this.#echoes = echoes;
    this.#plot = plot;
    setInterval(() => this.#ping(), INTERVAL_MS);
  }

  #ping(): void {
    if (!this.isOn || document.body.dataset["state"] !== "connected") {
      return;
    }
    const text = `ping ${performance.now().toFixed(3)}`;
    try {
      this.#line.send(text, { reliability: "reliable", priority: "immediate" });
    } catch {
      // The queue is full of what a person sent; the next ping is a moment away.
      return;
    }
    this.#echoes.expect(text, (roundTripMs) => this.#plot.add(roundTripMs));
  }
}
