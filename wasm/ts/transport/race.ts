/**
 * Races several carriers to one relay as in RFC 8305; the first to open wins.
 *
 * - The preferred carrier has a head start. When it expires, all others start together, because successive head starts
 *   would add up where UDP is blocked.
 * - If the preferred carrier fails during its head start, the next carrier gets a head start.
 * - A WebSocket that opens waits briefly for a better carrier in progress, which needs the announcement of the relay
 *   and one more round trip.
 *
 * This module also lists the available carriers.
 */

import { RakwireError } from "../errors.js";
import type { WebSocketConstructor } from "../types.js";
import type { Timers } from "../waits.js";
import type { Carrier, CarrierClose, CarrierEvents, CarrierKind, CarrierName } from "./carrier.js";
import { CARRIERS, HEAD_START_MS, LONGEST_YIELD_MS, LOST, lost, YIELDING_DIVISOR } from "./carrier.js";
import { webRtc } from "./webrtc.js";
import { attempt, readWebSocket, webSocket } from "./websocket.js";
import { webTransport } from "./webtransport.js";

/** A carrier in the race. */
export interface Entrant {
  name: CarrierName;
  open(events: CarrierEvents): Carrier;
}

/** The callbacks of a race. */
export interface RaceOwner {
  /**
   * Called when the winner is open and the others are closed. The race passes further events to the returned callbacks,
   * starting with `onOpen`.
   */
  onWon(name: CarrierName, carrier: Carrier): CarrierEvents;
  /** Called when all carriers failed. `close` has the code of the relay if one of the carriers received it. */
  onFailed(close: CarrierClose): void;
}

export class Race {
  readonly #owner: RaceOwner;
  readonly #timers: Timers;
  #waiting: Entrant[];
  /** Carriers that are opening; `undefined` for a carrier that could not be created and is about to fail. */
  readonly #running = new Map<Entrant, Carrier | undefined>();
  #failure: CarrierClose | undefined;
  #headStart: unknown;
  #yielding: unknown;
  /** Lets the waiting WebSocket win. */
  #standby: (() => void) | undefined;
  #deadline: unknown;

  /** `entrants` are in order of preference and must not be empty. The race fails if none opens within `withinMs`. */
  constructor(entrants: readonly Entrant[], owner: RaceOwner, timers: Timers, withinMs?: number) {
    this.#owner = owner;
    this.#timers = timers;
    this.#waiting = [...entrants];
    this.#limit(withinMs);
    this.#startNext();
  }

  /**
   * Immediately starts these carriers, except those that are already opening. Carriers that had not started yet are
   * dropped. Limits the rest of the race to `withinMs`.
   */
  join(entrants: readonly Entrant[], withinMs: number): void {
    const opening = [...this.#running.keys()].map(({ name }) => name);
    this.#waiting = entrants.filter(({ name }) => !opening.includes(name));
    this.#failure = undefined;
    this.#limit(withinMs);
    this.#startAll();
  }

  #limit(withinMs: number | undefined): void {
    this.#timers.clear(this.#deadline);
    if (withinMs !== undefined) {
      const fail = (): void => this.#fail(this.#failure ?? lost(`no answer within ${withinMs} ms`));
      this.#deadline = this.#timers.set(fail, withinMs);
    }
  }

  /** Cancels the race without a winner. */
  cancel(): void {
    [this.#headStart, this.#yielding, this.#deadline].forEach((timer) => this.#timers.clear(timer));
    this.#running.forEach((carrier) => carrier?.close());
    this.#running.clear();
  }

  /** Starts the next carrier, and after its head start all others. */
  #startNext(): void {
    this.#timers.clear(this.#headStart);
    this.#start();
    if (this.#waiting.length > 0) {
      this.#headStart = this.#timers.set(() => this.#startAll(), HEAD_START_MS);
    }
  }

  #startAll(): void {
    while (this.#waiting.length > 0) {
      this.#start();
    }
  }

  #start(): void {
    const entrant = this.#waiting.shift() as Entrant;
    const startedAt = this.#timers.now();
    const win = (): void => {
      const carrier = this.#running.get(entrant) as Carrier;
      this.#running.delete(entrant);
      this.cancel();
      carrier.events = this.#owner.onWon(entrant.name, carrier);
      carrier.events.onOpen();
    };
    const nothing = (): void => undefined;
    const events: CarrierEvents = {
      onOpen: () => {
        if (entrant.name !== "websocket" || this.#running.size === 1) {
          win();
          return;
        }
        this.#standby = win;
        const tookMs = this.#timers.now() - startedAt;
        this.#yielding = this.#timers.set(win, Math.min(tookMs / YIELDING_DIVISOR, LONGEST_YIELD_MS));
      },
      onDatagram: nothing,
      onControl: nothing,
      onClose: (close) => {
        if (this.#running.has(entrant)) {
          if (this.#standby === win) {
            this.#standby = undefined;
            this.#timers.clear(this.#yielding);
          }
          this.#onFailed(entrant, close);
        }
      },
    };
    this.#running.set(entrant, attempt(entrant.open, events));
  }

  #onFailed(entrant: Entrant, close: CarrierClose): void {
    this.#running.delete(entrant);
    // A close code of the relay is more specific than a failure to open.
    if (this.#failure === undefined || this.#failure.code === LOST) {
      this.#failure = close;
    }
    if (this.#waiting.length > 0) {
      this.#startNext();
    } else if (this.#running.size === 1) {
      this.#standby?.();
    } else if (this.#running.size === 0) {
      this.#fail(this.#failure);
    }
  }

  #fail(close: CarrierClose): void {
    this.cancel();
    this.#owner.onFailed(close);
  }
}

/** The implementation of every carrier. */
export const carrierKinds: Record<CarrierName, CarrierKind> = {
  webtransport: webTransport,
  webrtc: webRtc,
  websocket: webSocket,
};

/** Returns the carriers that the platform supports. */
export function supportedCarriers(names: readonly CarrierName[], custom: WebSocketConstructor | undefined): CarrierName[] {
  return names.filter((name) => carrierKinds[name].isSupported(custom));
}

/** Returns all available carriers, or only the requested one. Throws if the requested carrier is not available. */
export function readCarriers(requested: "auto" | CarrierName, custom: WebSocketConstructor | undefined): CarrierName[] {
  if (requested !== "auto" && !CARRIERS.includes(requested)) {
    throw new RakwireError("bad-option", `transport must be auto, ${CARRIERS.join(", ")}, not ${String(requested)}`);
  }
  const names = supportedCarriers(requested === "auto" ? CARRIERS : [requested], custom);
  if (names.length === 0) {
    if (requested === "auto" || requested === "websocket") {
      readWebSocket(custom);
    }
    throw new RakwireError("no-transport", `this platform has no ${requested}; use transport auto`);
  }
  return names;
}
