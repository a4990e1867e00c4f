/** Messages of a plugin that wait for room in their connection. */

import { RakwireError } from "../errors.js";
import type { Connection, SendOptions } from "../types.js";

/** A message that waits. */
export interface WaitingMessage {
  readonly bytes: Uint8Array;
  readonly options: SendOptions;
  onSent?(): void;
  /** It cannot be sent. */
  onFailed(error: unknown): void;
}

/** Sends messages in order, as soon as there is room. Its owner says how many may wait. */
export class SendQueue {
  readonly #connection: Connection;
  #messages: WaitingMessage[] = [];
  #isBlocked = false;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  get length(): number {
    return this.#messages.length;
  }

  push(message: WaitingMessage): void {
    this.#messages.push(message);
    this.#send();
  }

  /** Does not send a message that still waits. */
  remove(message: WaitingMessage): void {
    this.#messages = this.#messages.filter((other) => other !== message);
  }

  clear(): void {
    this.#messages = [];
  }

  #send(): void {
    for (let message = this.#messages[0]; message !== undefined && !this.#isBlocked; message = this.#messages[0]) {
      try {
        this.#connection.send(message.bytes, message.options);
      } catch (error) {
        if (error instanceof RakwireError && error.code === "queue-full") {
          void this.#wait(message);
          return;
        }
        this.remove(message);
        message.onFailed(error);
        continue;
      }
      this.remove(message);
      message.onSent?.();
    }
  }

  async #wait(message: WaitingMessage): Promise<void> {
    this.#isBlocked = true;
    try {
      await this.#connection.ready({ length: message.bytes.length, ...message.options });
    } catch (error) {
      this.remove(message);
      message.onFailed(error);
    }
    this.#isBlocked = false;
    this.#send();
  }
}
