/** Ready events: several peers agree that all of them are ready, for a round to begin; with RakNet's own plugin, too. */

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

/** Counters. */
export interface ReadyStats {
  /** Messages that are too short. */
  readonly malformed: number;
  /** Messages about events that are unknown here, or of peers that are not waited for. */
  readonly unexpected: number;
}

/**
 * The events of this peer, and the connections to the others, which must be those of RakNet.
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

  /** Lets events wait for the peer of a connection, until that has ended or {@link leave} is called. */
  join(connection: Connection): void {
    if (this.#queues.has(connection)) {
      return;
    }
    const plugin = { ids: READY_IDS, onMessage: ({ bytes }: Message) => this.#onMessage(connection, bytes) };
    this.#leaves.set(connection, attachUntilEnd(connection, plugin, () => this.leave(connection)));
    this.#queues.set(connection, new SendQueue(connection));
  }

  /** Waits for the peer of a connection no longer, for no event. */
  leave(connection: Connection): void {
    this.#leaves.get(connection)?.();
    this.#queues.get(connection)?.clear();
    this.#leaves.delete(connection);
    this.#queues.delete(connection);
    this.#events.forEach((event) => event.stopWaitingFor(connection));
  }

  /**
   * The event with a number, a whole one of 32 bits with a sign, which all peers know.
   *
   * @throws RakwireError with the code `bad-option` if it is no such number, or there are 64 events.
   */
  open(number: number): ReadyEvent {
    readInteger("the number of an event", number, MIN_EVENT, MAX_EVENT);
    const event = this.#events.get(number) ?? new ReadyEvent(number, this.#queues);
    if (!this.#events.has(number) && this.#events.size >= MAX_EVENTS) {
      throw new RakwireError("bad-option", `there are ${MAX_EVENTS} events; remove one first`);
    }
    this.#events.set(number, event);
    return event;
  }

  /** Forgets an event, of which nobody is told; false if it is unknown. */
  remove(number: number): boolean {
    return this.#events.delete(number);
  }

  stats(): ReadyStats {
    return { ...this.#stats };
  }

  #onMessage(connection: Connection, bytes: Uint8Array): void {
    const told = decodeReady(bytes);
    if (told === undefined) {
      this.#stats.malformed += 1;
    } else if (this.#events.get(told.event)?.take(connection, told.message) !== true) {
      this.#stats.unexpected += 1;
    }
  }
}
