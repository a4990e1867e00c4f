/** Senders whose message was refused because the memory of the connection was full. */

import { fromThrown } from "./errors.js";
import type { Peer } from "./peer.js";
import type { Wait } from "./waits.js";
import { WaitList } from "./waits.js";

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

  constructor(peer: Pick<Peer, "canSend">) {
    this.#peer = peer;
  }

  /** Resolves when the peer would accept such a message; rejects when it never would. */
  wait(wanted: WantedRoom, signal: AbortSignal | undefined): Promise<void> {
    const wait = this.#waits.add(signal);
    this.#wanted.set(wait, wanted);
    this.#check(wait);
    return wait.promise;
  }

  /** Looks again at what the peer would accept. */
  update(): void {
    this.#waits.all().forEach((wait) => this.#check(wait));
  }

  /** Tells all that nothing will be accepted any more. */
  refuse(error: Error): void {
    this.#waits.all().forEach((wait) => wait.reject(error));
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
