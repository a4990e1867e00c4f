/** Senders whose message was refused because the memory of the connection was full. */

import { readDelivery } from "./delivery.js";
import { fromThrown, notConnected } from "./errors.js";
import { readInteger } from "./options.js";
import type { Peer } from "./peer.js";
import type { Protocol, ReadyOptions } from "./types.js";
import type { Wait } from "./waits.js";
import { WaitList } from "./waits.js";

/** More bytes than any message can have. */
const MAX_LENGTH = 0xffff_ffff;

/** A message that somebody wants to send, as far as its room goes. */
export interface WantedRoom {
  length: number;
  delivery: number;
}

/** Those that wait until the peer would accept their message. */
export class WaitingSenders {
  /** The last message that was refused because there was no room for it. */
  refused: WantedRoom | undefined;

  readonly #peer: Pick<Peer, "canSend">;
  readonly #waits = new WaitList<void>();
  readonly #wanted = new WeakMap<Wait<void>, WantedRoom>();
  #isOver = false;

  constructor(peer: Pick<Peer, "canSend">) {
    this.#peer = peer;
  }

  /**
   * Resolves when the peer would accept such a message, or the one that it refused last if no length is given; rejects when
   * it never would.
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

  /** Looks again at what the peer would accept; says whether somebody still waits. */
  update(): boolean {
    this.#waits.all().forEach((wait) => this.#check(wait));
    return this.areWaiting;
  }

  /** Tells all that nothing will be accepted any more. */
  end(): void {
    this.#isOver = true;
    this.#waits.all().forEach((wait) => wait.reject(notConnected()));
  }

  #wait(wanted: WantedRoom, signal: AbortSignal | undefined): Promise<void> {
    const wait = this.#waits.add(signal);
    this.#wanted.set(wait, wanted);
    this.#check(wait);
    return wait.promise;
  }

  #check(wait: Wait<void>): void {
    const { length, delivery } = this.#wanted.get(wait) as WantedRoom;
    try {
      if (this.#peer.canSend(length, delivery)) {
        wait.resolve();
      }
    } catch (thrown) {
      wait.reject(fromThrown(thrown));
    }
  }
}
