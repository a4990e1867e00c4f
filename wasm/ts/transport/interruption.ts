/** The time from the loss of a carrier until another one has the flow, or there is no more time for that. */

/** The time before the second attempt to come back, the first being made at once; it doubles until the longest. */
const SECOND_DELAY_MS = 100;
const LONGEST_DELAY_MS = 2_000;
/** A carrier that does not last so long is replaced with a delay, or a way that never holds would be tried incessantly. */
const LASTING_MS = 1_000;
/**
 * How long the first attempt may take, as long as a carrier may be silent; it doubles until the longest, as a way may be slow.
 */
const FIRST_ATTEMPT_MS = 3_000;
const LONGEST_ATTEMPT_MS = 12_000;

export class Interruption {
  readonly #endsAt: number;
  #delayMs: number;
  #attemptMs = FIRST_ATTEMPT_MS;

  /** The flow waits for `withinMs` from `now` on, and had its carrier for `heldMs`. */
  constructor(now: number, withinMs: number, heldMs: number) {
    this.#endsAt = now + withinMs;
    this.#delayMs = heldMs >= LASTING_MS ? 0 : SECOND_DELAY_MS;
  }

  /** The pause before the next attempt; `undefined` if the flow does not wait so long. */
  nextDelay(now: number): number | undefined {
    // Many pages that lost the same relay shall not come back at the same moment.
    const delay = this.#delayMs * (0.5 + Math.random());
    this.#delayMs = Math.min(Math.max(2 * this.#delayMs, SECOND_DELAY_MS), LONGEST_DELAY_MS);
    return now + delay > this.#endsAt ? undefined : delay;
  }

  /** How long the next attempt may take to open a carrier. */
  nextAttemptMs(): number {
    const attemptMs = this.#attemptMs;
    this.#attemptMs = Math.min(2 * attemptMs, LONGEST_ATTEMPT_MS);
    return attemptMs;
  }
}
