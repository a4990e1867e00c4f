/** Sends small messages with a timestamp several times per second. */

import type { Echoes } from "./echoes.js";
import type { EchoConnection } from "./echo-connection.js";
import type { Plot } from "./plot.js";

const INTERVAL_MS = 100;

export class Pings {
  isOn = true;
  readonly #connection: EchoConnection;
  readonly #echoes: Echoes;
  readonly #plot: Plot;

  constructor(connection: EchoConnection, echoes: Echoes, plot: Plot) {
    this.#connection = connection;
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
      this.#connection.send(text, { reliability: "reliable", priority: "immediate" });
    } catch {
      // The send queue is full; the next ping follows soon.
      return;
    }
    this.#echoes.expect(text, (roundTripMs) => this.#plot.add(roundTripMs));
  }
}
