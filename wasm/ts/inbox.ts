/** Messages between their arrival and their reader. */

import type { Message } from "./types.js";

/** How many messages wait here before they wait in RakNet instead. */
const MOST_WAITING = 256;
/** Bytes of messages, each counted with 64 more, that wait here at most while something behind them is awaited. */
const MOST_BYTES = 16 * 1024 * 1024;
const OVERHEAD = 64;

/** A queue that any number of iterators take from. */
export class Inbox {
  readonly #onRoom: () => void;
  #waiting: Message[] = [];
  #bytes = 0;
  #readers: ((result: IteratorResult<Message, undefined>) => void)[] = [];
  #isClosed = false;

  /** `onRoom` is called when the queue was full and is no longer. */
  constructor(onRoom: () => void) {
    this.#onRoom = onRoom;
  }

  get isFull(): boolean {
    return this.#waiting.length >= MOST_WAITING;
  }

  /** Whether not even a bounded look at what comes behind the messages is possible. */
  get isOverfull(): boolean {
    return this.#bytes >= MOST_BYTES;
  }

  put(message: Message): void {
    const reader = this.#readers.shift();
    if (reader === undefined) {
      this.#waiting.push(message);
      this.#bytes += message.bytes.length + OVERHEAD;
    } else {
      reader({ done: false, value: message });
    }
  }

  /** Takes all that waits. */
  takeAll(): Message[] {
    const all = this.#waiting;
    this.#waiting = [];
    this.#bytes = 0;
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
      this.#bytes -= message.bytes.length + OVERHEAD;
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
