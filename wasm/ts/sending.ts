/**
 * The sending of messages: deliveries, byte checks, ids, and senders that wait for capacity. A delivery is passed to
 * Rust as a number: three bits of reliability, two of priority, and the channel.
 */

import { fromThrown, notConnected, RakwireError } from "./errors.js";
import { readInteger } from "./options.js";
import type { Priority, Protocol, ReadyOptions, Reliability, SendOptions } from "./types.js";
import { CHANNELS, MAX_LENGTH } from "./types.js";
import type { Wait } from "./waits.js";
import { WaitList } from "./waits.js";

const RELIABILITIES: readonly Reliability[] = [
  "unreliable",
  "unreliable-sequenced",
  "reliable",
  "reliable-ordered",
  "reliable-sequenced",
];
/** The number of the variant with a receipt of each reliability; 0 if it has none. */
const WITH_RECEIPT = [5, 0, 6, 7, 0];
const PRIORITIES: readonly Priority[] = ["immediate", "high", "medium", "low"];
const DEFAULTS: Readonly<Record<Protocol, Reliability>> = { raknet: "reliable-ordered", game: "reliable" };

function numberOf<T extends string>(what: string, names: readonly T[], name: T): number {
  const number = names.indexOf(name);
  if (number < 0) {
    throw new RakwireError("bad-option", `${what} must be one of ${names.join(", ")}, not ${String(name)}`);
  }
  return number;
}

/** Checks the options of a message and encodes its delivery. */
export function readDelivery(options: SendOptions, protocol: Protocol = "raknet"): number {
  const reliability = options.reliability ?? DEFAULTS[protocol];
  if (protocol === "game" && reliability !== "reliable" && reliability !== "unreliable") {
    const message = `reliability must be reliable or unreliable in the Game Protocol, not ${String(reliability)}`;
    throw new RakwireError("bad-option", message);
  }
  const channel = options.channel ?? 0;
  if (!Number.isInteger(channel) || channel < 0 || channel >= CHANNELS) {
    throw new RakwireError("bad-option", `channel must be 0 to ${CHANNELS - 1}, not ${String(channel)}`);
  }
  const priority = numberOf("priority", PRIORITIES, options.priority ?? "medium");
  return numberOf("reliability", RELIABILITIES, reliability) | (priority << 3) | (channel << 5);
}

/** Returns the variant of a delivery that requests a receipt. */
export function withReceipt(delivery: number, protocol: Protocol = "raknet"): number {
  if (protocol === "game") {
    throw new RakwireError("bad-option", "the Game Protocol has no receipts; use send");
  }
  const reliability = WITH_RECEIPT[delivery & 7] ?? 0;
  if (reliability === 0) {
    throw new RakwireError("bad-option", "sequenced messages have no receipts; choose another reliability");
  }
  return (delivery & ~7) | reliability;
}

/** Returns the name of a reliability number, whether or not it requests a receipt. */
export function reliabilityName(number: number): Reliability {
  return RELIABILITIES[number] ?? "reliable";
}

/** Throws if the value is not bytes, or its buffer was detached, for example by `postMessage`. */
export function checkBytes(bytes: unknown): asserts bytes is Uint8Array {
  if (!(bytes instanceof Uint8Array)) {
    throw new RakwireError("bad-option", "a message must be a Uint8Array");
  }
  if (bytes.length > 0) {
    return;
  }
  try {
    // Not every platform has `detached`, but constructing an array over a detached buffer always throws.
    new Uint8Array(bytes.buffer);
  } catch (cause) {
    throw new RakwireError("bad-option", "the buffer of the message is detached; send a copy", { cause });
  }
}

/** The first id that an application may send. RakNet reserves lower ids (`reserved-id`). */
export const FIRST_ALLOWED_ID = 0x1b;

/**
 * The first id that no part of RakNet uses. RakNet's plugins use the ids from {@link FIRST_ALLOWED_ID} up to this id.
 */
export const FIRST_FREE_ID = 0x86;

/** The capacity that a waiting message requires. */
export interface RequiredRoom {
  length: number;
  delivery: number;
}

/** The peer to which waiting senders send. */
interface Receiver {
  /** Returns true if a message would be accepted now. Throws if it would never be accepted. */
  canSend(length: number, delivery: number): boolean;
}

/** Senders waiting until the peer accepts a message of theirs. */
export class WaitingSenders {
  /** The last message that failed with `queue-full`. */
  refused: RequiredRoom | undefined;

  readonly #peer: Receiver;
  readonly #waits = new WaitList<void>();
  readonly #required = new WeakMap<Wait<void>, RequiredRoom>();
  #isOver = false;

  constructor(peer: Receiver) {
    this.#peer = peer;
  }

  /**
   * Resolves when the peer would accept the described message. Without a length, that is the last message that failed
   * with `queue-full`. Rejects if the message would never be accepted.
   */
  async ready(options: ReadyOptions, protocol: Protocol): Promise<void> {
    const { length, signal } = options;
    const delivery = readDelivery(options, protocol);
    if (length !== undefined) {
      readInteger("length", length, 1, MAX_LENGTH);
    }
    if (this.#isOver) {
      throw notConnected();
    }
    const refused = length === undefined ? this.refused : undefined;
    return this.#wait(refused ?? { length: length ?? 1, delivery }, signal);
  }

  get areWaiting(): boolean {
    return this.#waits.first !== undefined;
  }

  /** Checks all waits again. Returns true if some are still pending. */
  update(): boolean {
    this.#waits.all().forEach((wait) => this.#check(wait));
    return this.areWaiting;
  }

  /** Rejects all waits, because the connection closed. */
  end(): void {
    this.#isOver = true;
    this.#waits.all().forEach((wait) => wait.reject(notConnected()));
  }

  #wait(required: RequiredRoom, signal: AbortSignal | undefined): Promise<void> {
    const wait = this.#waits.add(signal);
    this.#required.set(wait, required);
    this.#check(wait);
    return wait.promise;
  }

  #check(wait: Wait<void>): void {
    const { length, delivery } = this.#required.get(wait) as RequiredRoom;
    try {
      if (this.#peer.canSend(length, delivery)) {
        wait.resolve();
      }
    } catch (thrown) {
      wait.reject(fromThrown(thrown));
    }
  }
}
