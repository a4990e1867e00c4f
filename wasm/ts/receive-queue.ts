/** The queue of received messages, and the precedence of their receivers. */

import type { Message } from "./types.js";
import { MAX_BYTES, MAX_MESSAGES, OVERHEAD } from "./types.js";
import type { Wait } from "./waits.js";
import { WaitList } from "./waits.js";

/** The message listeners, which take precedence over pending `receive` calls. */
export interface Listeners {
  readonly isEmpty: boolean;
  /** Delivers a message to all listeners. */
  dispatch(message: Message): void;
}

/** Takes a message before all other receivers. Returns false to leave it to them. */
export type Taker = (message: Message) => boolean;

/** A queue of messages. Each message goes either to all listeners or to the first pending `receive` call. */
export class ReceiveQueue {
  readonly #listeners: Listeners;
  readonly onRoom: () => void;
  readonly #readers = new WaitList<Message | undefined>();
  #messages: Message[] = [];
  #bytes = 0;
  #isDelivering = false;
  #isClosed = false;
  readonly #maxBytes: number;
  /** The receiver that takes precedence over all others. */
  taker: Taker | undefined;
  /** True if plugins also take messages queued behind unread ones. */
  hasPlugins = false;

  /** Calls `onRoom` when the queue is no longer full. */
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

  /** True if the queue reached its size limit. A full queue of small messages stays far below it. */
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

  /** Delivers messages to the listeners, or without listeners to pending `receive` calls. */
  deliver(): void {
    // If a listener triggers another delivery, the next message is delivered after the listener returns.
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

  /** Delivers the first message. Returns false if there is no receiver. */
  #deliverOne(): boolean {
    if (!this.#listeners.isEmpty) {
      this.#listeners.dispatch(this.#take());
      return true;
    }
    const reader = this.#readers.first;
    reader?.resolve(this.#take());
    return reader !== undefined;
  }

  /** Removes and returns the first message, which must exist. */
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

  /** Closes the queue. Once it is empty, `receive` returns `undefined`. */
  close(): void {
    this.#isClosed = true;
    this.deliver();
  }

  /** Returns the next message that no listener takes; `undefined` once the queue is closed and empty. */
  async receive(signal: AbortSignal | undefined): Promise<Message | undefined> {
    return this.#request(signal).promise;
  }

  #request(signal: AbortSignal | undefined): Wait<Message | undefined> {
    const reader = this.#readers.add(signal);
    this.deliver();
    return reader;
  }

  iterate(signal: AbortSignal | undefined): AsyncIterableIterator<Message> {
    let isOver = false;
    const pending = new Set<Wait<Message | undefined>>();
    const end = { done: true, value: undefined } as const;
    return {
      next: async () => {
        if (isOver) {
          return end;
        }
        const reader = this.#request(signal);
        pending.add(reader);
        try {
          const message = await reader.promise;
          return message === undefined ? end : { done: false, value: message };
        } finally {
          pending.delete(reader);
        }
      },
      // A message that the iterator requested but did not get goes to another receiver.
      return: async () => {
        isOver = true;
        pending.forEach((reader) => reader.resolve(undefined));
        return end;
      },
      [Symbol.asyncIterator]() {
        return this;
      },
    };
  }
}
