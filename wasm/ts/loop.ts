/** Drives a peer: handles its timeouts and sends its datagrams. */

import type { Peer } from "./peer.js";

/** The interval at which a full socket is polled: browsers have no event for it. */
const FULL_SOCKET_POLL_MS = 5;
/**
 * The interval at which a peer with datagrams to send is polled without a transport, because it may have timeouts as well.
 */
const NO_TRANSPORT_POLL_MS = 250;
/** A timer this late means that the tab is hidden or was suspended, and that received datagrams may be queued. */
const SUSPENDED_MS = 50;
/** The longest time for which queued datagrams are handled first, so that a flood does not stop the clock. */
const CATCH_UP_MS = 500;

/** The destination of datagrams. */
export interface Sink {
  /** The current transport; `undefined` while there is none. The owner runs the loop when it is back. */
  readonly name: string | undefined;
  readonly hasRoom: boolean;
  /** True if {@link send} does not keep a reference to its argument, so that no copy is needed. */
  readonly sendsAtOnce?: boolean;
  send(datagram: Uint8Array): void;
}

/** The methods of a peer that a loop calls. */
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
  /** True while datagrams that arrived during a suspension are handled first. */
  #isCatchingUp = false;
  /** True if something, such as a datagram, requested a run meanwhile. */
  #hasCaught = false;
  /** Created once, because many messages schedule a run each. */
  readonly #runScheduled = (): void => {
    this.#isScheduled = false;
    this.run();
  };
  readonly #runTimer = (): void => this.#onTimer();

  /**
   * Every run calls `onEvents` before it sends datagrams and again afterwards, because the last datagram may end the
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
        // Event callbacks may have taken long.
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

  /** Sends the datagrams that are ready, then stops for good. */
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
   * The peer must handle the datagrams that arrived meanwhile before it sees the new time. Node reads only a few of
   * them between two tasks, possibly those of the busiest peers first, so this repeats until none arrives.
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

/** Calls back in a new task. Timers of a hidden tab are delayed to once a second or once a minute. */
function afterTask(callback: () => void): void {
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => {
    port1.close();
    callback();
  };
  port2.postMessage(0);
}
