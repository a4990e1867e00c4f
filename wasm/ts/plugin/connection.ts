/** What plugins have of a connection: its messages until it ends, a queue for theirs, and a fingerprint to compare with its other side. */

import { RakwireError } from "../errors.js";
import type { Plugin } from "../plugin.js";
import { attach } from "../plugin.js";
import type { Connection, SendOptions } from "../types.js";

/**
 * Attaches a plugin, and calls back when the connection ends. Returns what detaches the plugin; the connection then keeps nothing
 * of it alive.
 *
 * @throws RakwireError as {@link attach}.
 */
export function attachUntilEnd(connection: Connection, plugin: Plugin, onEnd: () => void): () => void {
  const detach = attach(connection, plugin);
  const detached = new AbortController();
  const { signal } = detached;
  connection.whenClosed({ signal }).then(
    () => signal.aborted || onEnd(),
    () => undefined,
  );
  return () => {
    detach();
    detached.abort();
  };
}

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

/** FNV-1a with 64 bits, by which peers compare what they have. */
export function fingerprint(bytes: Iterable<number>): bigint {
  let hash = 0xcbf2_9ce4_8422_2325n;
  for (const byte of bytes) {
    hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x0100_0000_01b3n);
  }
  return hash;
}
