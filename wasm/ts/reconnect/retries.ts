/** When to try again, and when no longer. */

import { report } from "../plugin/report.js";
import { beforeAbort } from "../waits.js";
import type { ReconnectSettings } from "./options.js";

/** A connection that does not last so long leaves the pauses as long as they are, or a server that drops everybody would be dialled incessantly. */
const LASTING_MS = 5_000;

/** Counts failures, and makes the pauses between attempts. */
export class Retries {
  readonly #settings: ReconnectSettings;
  #delayMs: number;
  #failures = 0;

  constructor(settings: ReconnectSettings) {
    this.#settings = settings;
    this.#delayMs = settings.minDelayMs;
  }

  /** Pauses after an attempt that failed, or throws its error again if there is to be no other one. */
  async afterFailure(error: unknown): Promise<void> {
    const { signal, maxAttempts, shouldRetry } = this.#settings;
    signal?.throwIfAborted();
    this.#failures += 1;
    if (this.#failures >= maxAttempts || !shouldRetry(error)) {
      throw error;
    }
    await this.#pause(error);
  }

  /** Pauses after a connection that was open for so long and was lost. */
  async afterLoss(cause: unknown, lastedMs: number): Promise<void> {
    this.#failures = 0;
    if (lastedMs >= LASTING_MS) {
      this.#delayMs = this.#settings.minDelayMs;
    }
    await this.#pause(cause);
  }

  async #pause(cause: unknown): Promise<void> {
    const { signal, maxDelayMs, onRetry } = this.#settings;
    const delayMs = this.#delayMs * (0.5 + Math.random() / 2);
    this.#delayMs = Math.min(2 * this.#delayMs, maxDelayMs);
    try {
      onRetry({ cause, failures: this.#failures, delayMs });
    } catch (error) {
      report(error);
    }
    let timer: ReturnType<typeof setTimeout> | undefined;
    try {
      await beforeAbort(signal, new Promise((resolve) => (timer = setTimeout(resolve, delayMs))));
    } finally {
      clearTimeout(timer);
    }
  }
}
