/** Messages between their arrival and their reader. */

import type { Message } from "./types.js";

/** How many messages wait here before they wait in RakNet instead. */
const MOST_WAITING = 256;

/** A queue that any number of iterators take from. */
export class Inbox {
  readonly #onRoom: () => void;
  #waiting: Message[] = [];
  #readers: ((result: IteratorResult<Message, undefined>) => void)[] = [];
  #isClosed = false;

  /** `onRoom` is called when the queue was full and is no longer. */
  constructor(onRoom: () => void) {
    this.#onRoom = onRoom;
  }

  get isFull(): boolean {
    return this.#waiting.length >= MOST_WAITING;
  }

  put(message: Message): void {
    const reader = this.#readers.shift();
    if (reader === undefined) {
      this.#waiting.push(message);
    } else {
      reader({ done: false, value: message });
    }
  }

  /** Takes all that waits. */
  takeAll(): Message[] {
    const all = this.#waiting;
    this.#waiting = [];
    return all;
  }

  /** Readers get what waits, then the end. */
  close(): void {
    this.#isClosed = true;
    for (const reader of this.#readers.splice(0)) {
      reader({ done: true, value: undefined });
    }
  }

  async *read(): AsyncIterableIterator<Message> {
    for (;;) {
      const next = await this.#next();
      if (next.done === true) {
        return;
      }
      yield next.value;
    }
  }

  #next(): Promise<IteratorResult<Message, undefined>> {
    const wasFull = this.isFull;
    const message = this.#waiting.shift();
    if (message !== undefined) {
      if (wasFull) {
        this.#onRoom();
      }
      return Promise.resolve({ done: false, value: message });
    }
    if (this.#isClosed) {
      return Promise.resolve({ done: true, value: undefined });
    }
    return new Promise((resolve) => this.#readers.push(resolve));
  }
}
