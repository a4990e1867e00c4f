/** The queue of received messages. */

import type { Message } from "./types.js";

/** The length at which further messages stay in the protocol's memory. */
const MAX_MESSAGES = 256;
/** The size limit while a receipt behind the messages is awaited. Each message counts with {@link OVERHEAD}. */
const MAX_BYTES = 16 * 1024 * 1024;
const OVERHEAD = 64;

/** A queue of messages with any number of iterators. */
export class ReceiveQueue {
  readonly #onRoom: () => void;
  #messages: Message[] = [];
  #bytes = 0;
  #readers: ((result: IteratorResult<Message, undefined>) => void)[] = [];
  #isClosed = false;

  /** `onRoom` is called when the queue is no longer full. */
  constructor(onRoom: () => void) {
    this.#onRoom = onRoom;
  }

  get isFull(): boolean {
    return this.#messages.length >= MAX_MESSAGES;
  }

  /** Whether the size limit is reached, which is far above the length of a full queue of small messages. */
  get isOverByteLimit(): boolean {
    return this.#bytes >= MAX_BYTES;
  }

  push(message: Message): void {
    const reader = this.#readers.shift();
    if (reader === undefined) {
      this.#messages.push(message);
      this.#bytes += message.bytes.length + OVERHEAD;
    } else {
      reader({ done: false, value: message });
    }
  }

  /** Removes and returns all messages. */
  drain(): Message[] {
    const all = this.#messages;
    this.#messages = [];
    this.#bytes = 0;
    return all;
  }

  /** Ends the iterators after the queued messages. */
  close(): void {
    this.#isClosed = true;
    for (const reader of this.#readers.splice(0)) {
      reader({ done: true, value: undefined });
    }
  }

  async *iterate(): AsyncIterableIterator<Message> {
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
    const message = this.#messages.shift();
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
