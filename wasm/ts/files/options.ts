/** The options that both sides of a transfer have, and the limit of the bytes in a second. */

import { checkNames, readInteger, SEND_OPTIONS, WAIT_OPTIONS } from "../options.js";
import type { SendOptions } from "../types.js";

/** Refuses options that neither both sides nor this one have. */
export function checkTransfer(options: { delivery?: SendOptions }, ...own: string[]): void {
  checkNames(options, [...WAIT_OPTIONS, "timeoutMs", "window", "chunkBytes", "maxBytesPerSecond", "onProgress", "delivery", ...own]);
  checkNames(options.delivery, SEND_OPTIONS);
}

/** How much time that was not used may be made up for. */
const BURST_MS = 100;
/** So many chunks pass in a second at the least, so that something comes before the other side gives up. */
const CHUNKS_PER_SECOND = 4;

/** Says when the next bytes may travel. */
export class Pacer {
  readonly #bytesPerSecond: number;
  readonly #continue: () => void;
  #readyAt = -Infinity;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** Calls back when bytes may travel, after {@link isReady} has said that they may not yet. */
  constructor(bytesPerSecond: number | undefined, onReady: () => void) {
    this.#bytesPerSecond = bytesPerSecond === undefined ? Infinity : readInteger("maxBytesPerSecond", bytesPerSecond, 1, Number.MAX_SAFE_INTEGER);
    this.#continue = onReady;
  }

  /** How many bytes may travel at once, of so many; `least` at the least. */
  chunk(bytes: number, least: number): number {
    return Math.min(bytes, Math.max(least, Math.floor(this.#bytesPerSecond / CHUNKS_PER_SECOND)));
  }

  isReady(): boolean {
    const waitMs = this.#readyAt - performance.now();
    this.stop();
    if (waitMs > 0) {
      this.#timer = setTimeout(this.#continue, waitMs);
    }
    return waitMs <= 0;
  }

  passed(bytes: number): void {
    const now = performance.now();
    const begin = now - this.#readyAt <= BURST_MS ? this.#readyAt : now;
    this.#readyAt = begin + (1_000 * bytes) / this.#bytesPerSecond;
  }

  /** Does not call back. */
  stop(): void {
    clearTimeout(this.#timer);
  }
}
