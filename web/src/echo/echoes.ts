/** Which echo belongs to which message. */

interface Expected {
  sentAt: number;
  onEcho: (roundTripMs: number) => void;
}

/** Messages whose echoes never come, as unreliable ones may, are forgotten when there are this many. */
const MOST_EXPECTED = 500;

export class Echoes {
  readonly #expected = new Map<string, Expected[]>();
  #count = 0;

  /** Calls `onEcho` when `text` comes back, every byte of it. */
  expect(text: string, onEcho: Expected["onEcho"]): void {
    if (this.#count >= MOST_EXPECTED) {
      this.forget();
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

  forget(): void {
    this.#expected.clear();
    this.#count = 0;
  }
}
