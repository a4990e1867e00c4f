/** Drives a peer: handles its timeouts and sends its datagrams. */

import type { Peer } from "./peer.js";

/** The interval in milliseconds at which a full socket is polled, because browsers have no event for it. */
const FULL_SOCKET_POLL_MS = 5;
/**
 * The interval in milliseconds at which a peer without a transport is polled. Its next timeout cannot be used: a peer
 * with datagrams to send is always due immediately.
 */
const NO_TRANSPORT_POLL_MS = 250;
/**
 * A timer that fires this many milliseconds late indicates a hidden or suspended tab, in which received datagrams may
 * be queued.
 */
const SUSPENDED_MS = 50;
/**
 * The maximum time in milliseconds for which timeouts are deferred while queued datagrams are handled. It bounds the
 * delay under a flood.
 */
const CATCH_UP_MS = 500;

/** The destination of the datagrams of a peer. */
export interface Sink {
  /** The current transport; `undefined` while there is none. The owner runs the loop when the transport is back. */
  readonly name: string | undefined;
  readonly hasRoom: boolean;
  /** True if {@link send} does not keep a reference to its argument. Otherwise the loop passes a copy. */
  readonly sendsAtOnce?: boolean;
  send(datagram: Uint8Array): void;
}

/** The methods of a peer that the loop calls. */
export type Driven = Pick<Peer, "handleTimeout" | "pollTransmit" | "pollTimeout">;

/** Runs a peer whenever it has work. */
export class Loop {
  readonly #peer: Driven;
  readonly #sink: Sink;
  readonly #onEvents: () => void;
  readonly #onError: (thrown: unknown) => void;
  readonly #onRun: () => void;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #due = Infinity;
  #isScheduled = false;
  #scheduledAt = 0;
  #isStopped = false;
  /** True while the loop handles datagrams that arrived during a suspension, before any timeout. */
  #isCatchingUp = false;
  /** True if a run was requested while catching up. */
  #hasCaught = false;
  /** Allocated once, because many messages schedule a run each. */
  readonly #runScheduled = (): void => {
    this.#isScheduled = false;
    this.run();
  };
  readonly #runTimer = (): void => this.#onTimer();

  /**
   * Each run calls `onEvents` before sending datagrams and again afterwards, because the last datagram may close the
   * peer. It calls `onRun` at its end, and `onError` with exceptions.
   */
  constructor(
    peer: Driven,
    sink: Sink,
    onEvents: () => void,
    onError: (thrown: unknown) => void,
    onRun: () => void = () => undefined,
  ) {
    this.#peer = peer;
    this.#sink = sink;
    this.#onEvents = onEvents;
    this.#onError = onError;
    this.#onRun = onRun;
  }

  /**
   * Schedules a run as a microtask, so that all messages sent before it share datagrams. Returns the current time,
   * which is cached until that run: reading the clock costs as much as a small message.
   */
  schedule(): number {
    if (!this.#isScheduled) {
      this.#isScheduled = true;
      this.#scheduledAt = performance.now();
      queueMicrotask(this.#runScheduled);
    }
    return this.#scheduledAt;
  }

  /** Handles timeouts, sends as many datagrams as possible, and sets the timer. */
  run(now = performance.now()): void {
    if (this.#isStopped || this.#isCatchingUp) {
      this.#hasCaught = true;
      return;
    }
    if (now - this.#due >= SUSPENDED_MS) {
      this.#catchUp();
      return;
    }
    try {
      this.#peer.handleTimeout(now);
      this.#onEvents();
      if (!this.#isStopped) {
        // The event callbacks may have taken a long time.
        const later = performance.now();
        this.#transmit(later);
        this.#onEvents();
      }
      if (!this.#isStopped) {
        this.#setTimer(performance.now());
        this.#onRun();
      }
    } catch (thrown) {
      this.#onError(thrown);
    }
  }

  /** Sends the pending datagrams, and then stops permanently. */
  stop(): void {
    if (this.#isStopped) {
      return;
    }
    this.#isStopped = true;
    this.#clearTimer();
    try {
      this.#transmit(performance.now());
    } catch (thrown) {
      this.#onError(thrown);
    }
  }

  #transmit(now: number): void {
    while (this.#sink.hasRoom) {
      const datagram = this.#peer.pollTransmit(now);
      if (datagram === undefined) {
        return;
      }
      this.#sink.send(this.#sink.sendsAtOnce === true ? datagram : datagram.slice());
    }
  }

  #setTimer(now: number): void {
    const timeout = this.#peer.pollTimeout();
    const pollMs = this.#sink.name === undefined ? NO_TRANSPORT_POLL_MS : FULL_SOCKET_POLL_MS;
    const due = this.#sink.hasRoom ? timeout : Math.max(timeout, now + pollMs);
    if (due >= this.#due) {
      return;
    }
    this.#clearTimer();
    this.#due = due;
    this.#timer = setTimeout(this.#runTimer, Math.max(0, Math.ceil(due - now)));
  }

  #clearTimer(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#due = Infinity;
  }

  #onTimer(): void {
    const now = performance.now();
    if (now - this.#due < SUSPENDED_MS) {
      this.#clearTimer();
    }
    this.run(now);
  }

  /**
   * The peer must handle the datagrams that arrived during the suspension before it gets the new time. Node reads
   * only a few datagrams per task, possibly those of the busiest peers first. The wait therefore lasts until a task
   * has delivered no datagram.
   */
  #catchUp(): void {
    this.#clearTimer();
    this.#isCatchingUp = true;
    const end = performance.now() + CATCH_UP_MS;
    const next = (): void => {
      if (this.#hasCaught && !this.#isStopped && performance.now() < end) {
        this.#hasCaught = false;
        afterTask(next);
        return;
      }
      this.#isCatchingUp = false;
      this.run();
    };
    this.#hasCaught = true;
    next();
  }
}

/**
 * Runs `callback` in a new task, without a timer: browsers run the timers of a hidden tab only once a second or once
 * a minute.
 */
function afterTask(callback: () => void): void {
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => {
    port1.close();
    callback();
  };
  port2.postMessage(0);
}
