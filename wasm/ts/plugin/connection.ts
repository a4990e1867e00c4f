/**
 * Helpers for plugins: attaching until the connection closes, a send queue, and a fingerprint for comparing settings
 * with the peer.
 */

import { RakwireError } from "../errors.js";
import type { Plugin } from "../plugin.js";
import { attach } from "../plugin.js";
import type { Connection, SendOptions } from "../types.js";

/**
 * Attaches a plugin, and calls `onEnd` when the connection closes. Returns a function that detaches the plugin, after
 * which the connection keeps no reference to it.
 *
 * @throws RakwireError for the same reasons as {@link attach}.
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

/** A message in a send queue. */
export interface WaitingMessage {
  readonly bytes: Uint8Array;
  readonly options: SendOptions;
  onSent?(): void;
  /** Called if the message cannot be sent. */
  onFailed(error: unknown): void;
}

/** Sends messages in order, each as soon as the connection accepts it. The owner limits their number. */
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

  /** Removes a message that has not been sent yet. */
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

/** Returns the 64-bit FNV-1a hash, for comparing schemas and settings. */
export function fingerprint(bytes: Iterable<number>): bigint {
  let hash = 0xcbf2_9ce4_8422_2325n;
  for (const byte of bytes) {
    hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x0100_0000_01b3n);
  }
  return hash;
}
