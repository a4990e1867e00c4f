/**
 * Ready events: several peers agree that all of them are ready, for example to start a round. Compatible with RakNet's
 * ReadyEvent plugin.
 */

import { RakwireError } from "./errors.js";
import { readInteger } from "./options.js";
import { attachUntilEnd, SendQueue } from "./plugin/connection.js";
import { decodeReady, READY_IDS, ReadyEvent } from "./ready/event.js";
import type { Connection, Message } from "./types.js";

export { RakwireError } from "./errors.js";
export type { ErrorCode, RakwireErrorOptions } from "./errors.js";
export type { ReadyEvent, ReadyStatus } from "./ready/event.js";

const MAX_EVENTS = 64;
const MIN_EVENT = -(2 ** 31);
const MAX_EVENT = 2 ** 31 - 1;

/** Counters of ready events. */
export interface ReadyStats {
  /** Messages that were too short. */
  readonly malformed: number;
  /** Messages about unknown events, or from peers that the event does not wait for. */
  readonly unexpected: number;
}

/**
 * The ready events of this peer, and the RakNet connections to the other peers.
 *
 * ```ts
 * const events = new ReadyEvents();
 * events.join(connection);
 * const start = events.open(1);
 * start.waitFor(connection);
 * start.set(true);
 * await start.whenCompleted();
 * ```
 */
export class ReadyEvents {
  readonly #events = new Map<number, ReadyEvent>();
  readonly #queues = new Map<Connection, SendQueue>();
  readonly #leaves = new Map<Connection, () => void>();
  readonly #stats = { malformed: 0, unexpected: 0 };

  /**
   * Adds the peer of a connection, until the connection closes or {@link leave} is called. Events can then wait for it.
   */
  join(connection: Connection): void {
    if (this.#queues.has(connection)) {
      return;
    }
    const plugin = { ids: READY_IDS, onMessage: ({ bytes }: Message) => this.#onMessage(connection, bytes) };
    this.#leaves.set(connection, attachUntilEnd(connection, plugin, () => this.leave(connection)));
    this.#queues.set(connection, new SendQueue(connection));
  }

  /** Removes the peer of a connection from all events. */
  leave(connection: Connection): void {
    this.#leaves.get(connection)?.();
    this.#queues.get(connection)?.clear();
    this.#leaves.delete(connection);
    this.#queues.delete(connection);
    this.#events.forEach((event) => event.stopWaitingFor(connection));
  }

  /**
   * Returns the event with a number, and creates it if necessary. The number is a signed 32-bit integer that all peers
   * must agree on.
   *
   * @throws RakwireError with the code `bad-option` if the number is invalid, or there are already 64 events.
   */
  open(number: number): ReadyEvent {
    readInteger("the number of an event", number, MIN_EVENT, MAX_EVENT);
    const event = this.#events.get(number) ?? new ReadyEvent(number, this.#queues);
    if (!this.#events.has(number) && this.#events.size >= MAX_EVENTS) {
      throw new RakwireError("bad-option", `there are already ${MAX_EVENTS} events; remove one first`);
    }
    this.#events.set(number, event);
    return event;
  }

  /** Removes an event without notifying the peers. Returns false if it does not exist. */
  remove(number: number): boolean {
    return this.#events.delete(number);
  }

  stats(): ReadyStats {
    return { ...this.#stats };
  }

  #onMessage(connection: Connection, bytes: Uint8Array): void {
    const decoded = decodeReady(bytes);
    if (decoded === undefined) {
      this.#stats.malformed += 1;
    } else if (this.#events.get(decoded.event)?.take(connection, decoded.message) !== true) {
      this.#stats.unexpected += 1;
    }
  }
}
