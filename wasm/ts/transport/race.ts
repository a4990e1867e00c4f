/**
 * Several carriers to one relay are opened, and the first that is open wins (RFC 8305). The preferred one has a head start; when
 * that is over all others begin, since several head starts would add up where UDP is blocked. If it fails before, the next one
 * has a head start in its place. A WebSocket that opens yields for a moment to a better carrier that is on its way: that asks the
 * relay first where it leads, and needs a round trip more.
 *
 * Here is also which carriers this package has.
 */

import { RakwireError } from "../errors.js";
import type { WebSocketConstructor } from "../types.js";
import type { Carrier, CarrierClose, CarrierEvents, CarrierKind, CarrierName, Timers } from "./carrier.js";
import { attempt, CARRIERS, LOST } from "./carrier.js";
import { webRtc } from "./webrtc.js";
import { readWebSocket, webSocket } from "./websocket.js";
import { webTransport } from "./webtransport.js";

/** The Connection Attempt Delay that RFC 8305 recommends. */
export const HEAD_START_MS = 250;
/** The part of the time it took to open for which a WebSocket yields, and the longest. */
const YIELDING_PART = 1 / 3;
const LONGEST_YIELD_MS = 250;

/** One that takes part. */
export interface Entrant {
  name: CarrierName;
  open(events: CarrierEvents): Carrier;
}

/** Who is told how a race ends. */
export interface RaceOwner {
  /** The winner is open. It calls what is returned from now on, `onOpen` first; the others are closed. */
  onWon(name: CarrierName, carrier: Carrier): CarrierEvents;
  /** All have failed; the close is that of the relay if one of them heard of one. */
  onFailed(close: CarrierClose): void;
}

export class Race {
  readonly #owner: RaceOwner;
  readonly #timers: Timers;
  readonly #waiting: Entrant[];
  readonly #running = new Set<Carrier>();
  #failure: CarrierClose | undefined;
  #headStart: unknown;
  #yielding: unknown;
  /** Lets the WebSocket win that yields. */
  #standby: (() => void) | undefined;
  #deadline: unknown;
  #isOver = false;

  /** The entrants in the order of preference, at least one. With `withinMs` it fails if none is open after that time. */
  constructor(entrants: readonly Entrant[], owner: RaceOwner, timers: Timers, withinMs?: number) {
    this.#owner = owner;
    this.#timers = timers;
    this.#waiting = [...entrants];
    if (withinMs !== undefined) {
      this.#deadline = timers.set(() => this.#giveUp(withinMs), withinMs);
    }
    this.#startNext();
  }

  /** Ends the race without a winner. */
  cancel(): void {
    this.#isOver = true;
    [this.#headStart, this.#yielding, this.#deadline].forEach((timer) => this.#timers.clear(timer));
    this.#running.forEach((carrier) => carrier.close());
    this.#running.clear();
  }

  /** Starts the next one, and later all others. */
  #startNext(): void {
    this.#timers.clear(this.#headStart);
    this.#start();
    if (this.#waiting.length > 0) {
      this.#headStart = this.#timers.set(() => {
        while (this.#waiting.length > 0) {
          this.#start();
        }
      }, HEAD_START_MS);
    }
  }

  #start(): void {
    const entrant = this.#waiting.shift() as Entrant;
    let events: CarrierEvents | undefined;
    const startedAt = this.#timers.now();
    const win = (): void => {
      this.#running.delete(carrier);
      this.cancel();
      events = this.#owner.onWon(entrant.name, carrier);
      events.onOpen();
    };
    const carrier = attempt((told) => entrant.open(told), {
      onOpen: () => {
        if (entrant.name !== "websocket" || this.#running.size === 1) {
          win();
          return;
        }
        this.#standby = win;
        const tookMs = this.#timers.now() - startedAt;
        this.#yielding = this.#timers.set(win, Math.min(tookMs * YIELDING_PART, LONGEST_YIELD_MS));
      },
      onDatagram: (datagram) => events?.onDatagram(datagram),
      onControl: (text) => events?.onControl(text),
      onClose: (close) => {
        if (events !== undefined) {
          events.onClose(close);
        } else if (!this.#isOver) {
          if (this.#standby === win) {
            this.#standby = undefined;
            this.#timers.clear(this.#yielding);
          }
          this.#onFailed(carrier, close);
        }
      },
    });
    this.#running.add(carrier);
  }

  #onFailed(carrier: Carrier, close: CarrierClose): void {
    this.#running.delete(carrier);
    // What the relay said tells more than that something was not there.
    if (this.#failure === undefined || this.#failure.code === LOST) {
      this.#failure = close;
    }
    if (this.#waiting.length > 0) {
      this.#startNext();
    } else if (this.#running.size === 1) {
      this.#standby?.();
    } else if (this.#running.size === 0) {
      this.cancel();
      this.#owner.onFailed(this.#failure);
    }
  }

  /** Those that still open are not waited for any longer. */
  #giveUp(withinMs: number): void {
    this.cancel();
    this.#owner.onFailed(this.#failure ?? { code: LOST, reason: `no answer within ${withinMs} ms` });
  }
}

/** The carriers to a relay that this package has. */
export const carrierKinds: Record<CarrierName, CarrierKind> = {
  webtransport: webTransport,
  webrtc: webRtc,
  websocket: webSocket,
};

/** Those that the platform has, of these. */
export function present(names: readonly CarrierName[], given: WebSocketConstructor | undefined): CarrierName[] {
  return names.filter((name) => carrierKinds[name].isThere(given));
}

/** The carriers that a caller wants: all, or a single one, which has to be there. */
export function readCarriers(wanted: "auto" | CarrierName, given: WebSocketConstructor | undefined): CarrierName[] {
  if (wanted !== "auto" && !CARRIERS.includes(wanted)) {
    throw new RakwireError("bad-option", `transport must be auto, ${CARRIERS.join(", ")}, not ${String(wanted)}`);
  }
  const names = present(wanted === "auto" ? CARRIERS : [wanted], given);
  if (names.length === 0) {
    if (wanted === "auto" || wanted === "websocket") {
      readWebSocket(given);
    }
    throw new RakwireError("no-transport", `this platform has no ${wanted}`);
  }
  return names;
}
