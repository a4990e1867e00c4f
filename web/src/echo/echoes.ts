/** Matches echoes with sent messages. */

interface Expected {
  sentAt: number;
  onEcho: (roundTripMs: number) => void;
}

/**
 * The number of expected echoes at which all are discarded. Otherwise the echoes of lost unreliable messages would
 * accumulate.
 */
const MAX_EXPECTED = 500;

export class Echoes {
  readonly #expected = new Map<string, Expected[]>();
  #count = 0;

  /** Calls `onEcho` when an identical text arrives. */
  expect(text: string, onEcho: Expected["onEcho"]): void {
    if (this.#count >= MAX_EXPECTED) {
      this.clear();
    }
    const same = this.#expected.get(text) ?? [];
    same.push({ sentAt: performance.now(), onEcho });
    this.#expected.set(text, same);
    this.#count++;
  }

  arrived(text: string): void {
    const same = this.#expected.get(text);
    const first = same?.shift();
    if (same?.length === 0) {
      this.#expected.delete(text);
    }
    if (first !== undefined) {
      this.#count--;
      first.onEcho(performance.now() - first.sentAt);
    }
  }

  clear(): void {
    this.#expected.clear();
    this.#count = 0;
  }
}
