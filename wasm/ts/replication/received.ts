/** Which ticks were received. */

/** So many ticks are acknowledged at once. */
const WINDOW = 33;

/** The latest tick that was received, and which of the 32 before. */
export class Received {
  #latest = 0;
  /** Bit `n` stands for `n + 1` ticks before the latest. */
  #before = 0;

  /** 0 before the first one. */
  get latest(): number {
    return this.#latest;
  }

  get before(): number {
    return this.#before >>> 0;
  }

  /** Whether a tick is too old to be acknowledged. */
  isTooOld(tick: number): boolean {
    return this.#latest - tick >= WINDOW;
  }

  /** Adds a tick that is not too old. */
  add(tick: number): void {
    const later = tick - this.#latest;
    if (later < 0) {
      this.#before |= bit(-later);
    } else if (later > 0) {
      const moved = later < 32 ? this.#before << later : 0;
      this.#before = this.#latest === 0 ? 0 : moved | bit(later);
      this.#latest = tick;
    }
  }
}

/** The bit that stands for so many ticks before the latest. */
function bit(ticks: number): number {
  return ticks < WINDOW ? 1 << (ticks - 1) : 0;
}
