/** Drives a peer: takes time and datagrams to it and datagrams from it. */

import type { AnyPeer } from "./wasm.js";

/** How long to wait until a full socket is looked at again: browsers do not tell when there is room. */
const FULL_SOCKET_MS = 5;
/** A timer this late belongs to a tab that was asleep, and datagrams may wait behind it. */
const LATE_MS = 250;

/** Where datagrams go. */
export interface Sink {
  readonly hasRoom: boolean;
  send(datagram: Uint8Array): void;
}

/** What a loop needs of a peer. */
export type Driven = Pick<AnyPeer, "handleTimeout" | "pollTransmit" | "pollTimeout">;

/** Calls a peer whenever there is something to do for it. */
export class Loop {
  readonly #peer: Driven;
  readonly #sink: Sink;
  readonly #onTurn: () => void;
  readonly #onError: (thrown: unknown) => void;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #due = Infinity;
  #turnIsQueued = false;
  #isStopped = false;

  /** `onTurn` runs in every turn before datagrams are sent; what anything throws goes to `onError`. */
  constructor(peer: Driven, sink: Sink, onTurn: () => void, onError: (thrown: unknown) => void) {
    this.#peer = peer;
    this.#sink = sink;
    this.#onTurn = onTurn;
    this.#onError = onError;
  }

  /** Takes a turn after what runs now, so that all that is sent by then shares datagrams. */
  soon(): void {
    if (this.#turnIsQueued) {
      return;
    }
    this.#turnIsQueued = true;
    queueMicrotask(() => {
      this.#turnIsQueued = false;
      this.turn();
    });
  }

  /** Does what is due, sends what there is room for, and sets the timer. */
  turn(): void {
    if (this.#isStopped) {
      return;
    }
    try {
      this.#peer.handleTimeout(performance.now());
      this.#onTurn();
      if (!this.#isStopped) {
        this.#transmit();
        this.#setTimer();
      }
    } catch (thrown) {
      this.#onError(thrown);
    }
  }

  /** Sends what is ready, once more, and never again. */
  stop(): void {
    if (this.#isStopped) {
      return;
    }
    this.#isStopped = true;
    this.#clearTimer();
    try {
      this.#transmit();
    } catch (thrown) {
      this.#onError(thrown);
    }
  }

  #transmit(): void {
    const now = performance.now();
    while (this.#sink.hasRoom) {
      const datagram = this.#peer.pollTransmit(now);
      if (datagram === undefined) {
        return;
      }
      this.#sink.send(datagram);
    }
  }

  #setTimer(): void {
    const now = performance.now();
    const wanted = this.#peer.pollTimeout() ?? Infinity;
    const due = this.#sink.hasRoom ? wanted : Math.max(wanted, now + FULL_SOCKET_MS);
    if (due >= this.#due) {
      return;
    }
    this.#clearTimer();
    this.#due = due;
    this.#timer = setTimeout(() => this.#onTimer(), Math.max(0, Math.ceil(due - now)));
  }

  #clearTimer(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#due = Infinity;
  }

  #onTimer(): void {
    const late = performance.now() - this.#due;
    this.#clearTimer();
    if (late < LATE_MS) {
      this.turn();
      return;
    }
    // Time must not pass for the peer before it has seen what arrived in the meantime.
    this.#due = performance.now();
    this.#timer = setTimeout(() => {
      this.#clearTimer();
      this.turn();
    }, 0);
  }
}
