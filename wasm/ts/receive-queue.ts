/** The queue of received messages, and who gets them. */

import type { Message } from "./types.js";
import { MAX_BYTES, MAX_MESSAGES, OVERHEAD } from "./types.js";
import type { Wait } from "./waits.js";
import { WaitList } from "./waits.js";

/** Those that get messages as they come, before anybody who asks for one. */
export interface Listeners {
  readonly isEmpty: boolean;
  /** Gives a message to all of them. */
  dispatch(message: Message): void;
}

/** Takes a message in place of everybody else, or says false. */
export type Taker = (message: Message) => boolean;

/** A queue of messages. Each goes to the listeners, if there are any, or to the first one who asks, and to nobody else. */
export class ReceiveQueue {
  readonly #listeners: Listeners;
  readonly onRoom: () => void;
  readonly #readers = new WaitList<Message | undefined>();
  #messages: Message[] = [];
  #bytes = 0;
  #isDelivering = false;
  #isClosed = false;
  readonly #maxBytes: number;
  /** Has the first choice. */
  taker: Taker | undefined;
  /** Whether the taker wants what comes behind messages that nobody reads. */
  hasPlugins = false;

  /** `onRoom` is called when the queue is no longer full. */
  constructor(listeners: Listeners, onRoom: () => void, maxBytes = MAX_BYTES) {
    this.#listeners = listeners;
    this.onRoom = onRoom;
    this.#maxBytes = maxBytes;
  }

  get length(): number {
    return this.#messages.length;
  }

  get isFull(): boolean {
    return this.#messages.length >= MAX_MESSAGES;
  }

  /** Whether the size limit is reached, which is far above the length of a full queue of small messages. */
  get isOverByteLimit(): boolean {
    return this.#bytes >= this.#maxBytes;
  }

  push(message: Message): void {
    if (this.taker?.(message)) {
      return;
    }
    this.#messages.push(message);
    this.#bytes += message.bytes.length + OVERHEAD;
    this.deliver();
  }

  /** Gives the messages to the listeners while there are any, and then to those who have asked. */
  deliver(): void {
    // A listener that causes another delivery gets the next message after this one.
    if (this.#isDelivering) {
      return;
    }
    this.#isDelivering = true;
    try {
      while (this.#messages.length > 0 && this.#deliverOne());
    } finally {
      this.#isDelivering = false;
    }
    if (this.#isClosed && this.#messages.length === 0) {
      for (const reader of this.#readers.all()) {
        reader.resolve(undefined);
      }
    }
  }

  /** Delivers the first message; false if nobody wants it. */
  #deliverOne(): boolean {
    if (!this.#listeners.isEmpty) {
      this.#listeners.dispatch(this.#take());
      return true;
    }
    const reader = this.#readers.first;
    reader?.resolve(this.#take());
    return reader !== undefined;
  }

  /** Takes the first message out, which must be there. */
  #take(): Message {
    const wasFull = this.isFull;
    const message = this.#messages.shift() as Message;
    this.#bytes -= message.bytes.length + OVERHEAD;
    if (wasFull) {
      this.onRoom();
    }
    return message;
  }

  /** Removes and returns all messages. */
  drain(): Message[] {
    const messages = this.#messages;
    this.#messages = [];
    this.#bytes = 0;
    return messages;
  }

  /** No message follows those that are queued; who asks for more gets `undefined`. */
  close(): void {
    this.#isClosed = true;
    this.deliver();
  }

  /** The next message that no listener gets; `undefined` when all have been delivered and the queue is closed. */
  async receive(signal: AbortSignal | undefined): Promise<Message | undefined> {
    return this.#ask(signal).promise;
  }

  #ask(signal: AbortSignal | undefined): Wait<Message | undefined> {
    const reader = this.#readers.add(signal);
    this.deliver();
    return reader;
  }

  iterate(signal: AbortSignal | undefined): AsyncIterableIterator<Message> {
    let isOver = false;
    const asked = new Set<Wait<Message | undefined>>();
    const end = { done: true, value: undefined } as const;
    return {
      next: async () => {
        if (isOver) {
          return end;
        }
        const reader = this.#ask(signal);
        asked.add(reader);
        try {
          const message = await reader.promise;
          return message === undefined ? end : { done: false, value: message };
        } finally {
          asked.delete(reader);
        }
      },
      // What the iterator has asked for and not got goes to others.
      return: async () => {
        isOver = true;
        asked.forEach((reader) => reader.resolve(undefined));
        return end;
      },
      [Symbol.asyncIterator]() {
        return this;
      },
    };
  }
}
