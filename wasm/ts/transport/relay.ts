/**
 * Sends and receives datagrams through a relay. Several carriers race to open a flow of the relay. Another carrier can
 * continue the flow when its carrier is lost or a better carrier opens. To the server, this looks like packet loss.
 */

import type { Timers } from "../waits.js";
import { PLATFORM_TIMERS } from "../waits.js";
import { fetchAnnounced } from "./announced.js";
import type { Announced, Carrier, CarrierClose, CarrierEvents, CarrierName, TransportEnd } from "./carrier.js";
import { describeClose, isLoss, LONGEST_DATAGRAM, LOST, lost, canRetryResume } from "./carrier.js";
import type { Flow } from "./flow.js";
import {
  ATTACHED,
  ENDED,
  FEW_BYTES,
  FIRST_REQUEST_MS,
  FIRST_REQUESTS,
  FIRST_UPGRADE_MS,
  Interruption,
  LATE_MS,
  LONGEST_UPGRADE_MS,
  LOST_CARRIER,
  MIGRATING,
  MIN_REQUEST_1,
  RACING,
  readFlow,
  readNotice,
  readText,
  REQUEST_1,
  REQUESTS,
  SILENT_MS,
  STREAM,
  TAKEN_OVER,
  TOKEN_REFUSED,
  UPGRADE_MS,
  WATCH_MS,
} from "./flow.js";
import type { Entrant } from "./race.js";
import { carrierKinds, Race, supportedCarriers } from "./race.js";
import type { Transport, TransportEvents, TransportSettings } from "./transport.js";
import { directTransport } from "./transport.js";

/** An open carrier. */
interface Link {
  name: CarrierName;
  carrier: Carrier;
  /**
   * The sending time of the first datagram since the last received datagram; `undefined` if none was sent since then.
   */
  unansweredSince?: number | undefined;
  /** True if silence was attributed to a blocked page and nothing has arrived since then. */
  wasExcused?: boolean;
  /** The number of unsent bytes at the last check for silence. */
  unsent: number;
  /** True once anything has arrived. */
  hasData?: boolean;
  /** The time at which the relay assigned the flow to this carrier. */
  heldSince?: number;
}

/** The successor of the flow's carrier: a race for it, or the winner, which has requested the flow. */
type Successor = { race: Race; next?: undefined } | { race?: undefined; next: Link };
type NoSuccessor = { race?: undefined; next?: undefined };

/** No carrier is open yet, and there is no flow. If no race is running, the transport is about to close. */
interface Racing {
  kind: typeof RACING;
  race?: Race;
  active?: undefined;
  next?: undefined;
  flow?: undefined;
}

/** A carrier is in use. The relay may later assign a flow to it. */
interface Attached extends NoSuccessor {
  kind: typeof ATTACHED;
  active: Link;
  flow: Flow | undefined;
}

/** A carrier is in use, and a better carrier is about to continue its flow. */
type Migrating = { kind: typeof MIGRATING; active: Link; flow: Flow } & Successor;

/**
 * The carrier of the flow was lost, and the relay keeps the flow. A race for another carrier is running or starts when
 * a timer fires. A race or successor from the state Migrating continues.
 */
type Lost = { kind: typeof LOST_CARRIER; active?: undefined; flow: Flow; interruption: Interruption } & (Successor | NoSuccessor);

/** Everything is closed. No callback follows. */
interface Ended extends NoSuccessor {
  kind: typeof ENDED;
  active?: undefined;
  flow?: undefined;
}

type State = Racing | Attached | Migrating | Lost | Ended;

/** The purpose of a timer. Each link has its own timer for requesting its flow. */
type Purpose = "retry" | "end" | "watch" | "upgrade" | Link;

/** Starts opening carriers to a relay. */
export function openRelay(settings: TransportSettings, events: TransportEvents): Transport {
  return new RelayTransport(settings, events, PLATFORM_TIMERS);
}

/**
 * The carriers to one relay, as a state machine.
 *
 * ```text
 *            a carrier opens            a better one is tried
 *   Racing ──────────────────> Attached ──────────────────────> Migrating
 *      ^                       │  │  ^ ^                          │  │
 *      └───────────────────────┘  │  │ └──────────────────────────┘  │
 *        nothing arrives by it    │  │   it takes over, or fails     │
 *                                 │  │                               │
 *                the carrier is   │  │  another carrier              │
 *                lost or silent   v  │  has the flow                 │
 *                                 Lost <─────────────────────────────┘
 *                                       the carrier is lost or silent;
 *                                       a race continues, and all others join
 * ```
 *
 * Every state leads to Ended: each on `close`; Racing when all carriers failed; Attached and Migrating when the relay
 * closes the carrier permanently; Lost when the relay refuses or has forgotten the flow, or no longer keeps it.
 */
export class RelayTransport implements Transport {
  /** True, because all carriers copy their data. */
  readonly sendsAtOnce: boolean;
  readonly #settings: TransportSettings;
  readonly #url: URL;
  /** The allowed carriers in order of preference. */
  readonly #names: readonly CarrierName[];
  readonly #timers: Timers;
  readonly #owner: TransportEvents;
  readonly #abort = new AbortController();
  #state: State = { kind: RACING };
  /**
   * Unresponsive carriers. The relay may have assigned the flow to one of them, and closing it would close the flow.
   * They are closed once another carrier has the flow.
   */
  readonly #abandoned: Carrier[] = [];
  /** The kinds of carriers that opened but received nothing since a carrier last had the flow. */
  readonly #unresponsive = new Set<CarrierName>();
  /** The last datagram sent over a carrier that has received nothing. */
  #unanswered: Uint8Array | undefined;
  /** The maximum datagram length in bytes, set by the first carrier. */
  #longest: number | undefined;
  /** The last announcement of the relay. */
  #offered: Announced | undefined;
  #upgradeMs = FIRST_UPGRADE_MS;
  readonly #running = new Map<Purpose, unknown>();
  /** The number of datagrams dropped because they were too long for the path. */
  dropped = 0;

  constructor(settings: TransportSettings, events: TransportEvents, timers: Timers) {
    this.#settings = settings;
    this.sendsAtOnce = settings.webSocket === undefined;
    this.#url = new URL(settings.url);
    this.#names = supportedCarriers(settings.carriers, settings.webSocket);
    this.#timers = timers;
    this.#owner = events;
    if (this.#names.length > 0) {
      this.#seek();
    } else {
      const reason = `this platform has no ${settings.carriers.join(", ")}; use transport auto`;
      queueMicrotask(() => this.#end({ code: "no-transport", reason }));
    }
  }

  get name(): CarrierName | undefined {
    return this.#state.active?.name;
  }

  get hasRoom(): boolean {
    return this.#state.active?.carrier.hasRoom === true;
  }

  get bufferedAmount(): number {
    return this.#state.active?.carrier.bufferedAmount ?? 0;
  }

  send(datagram: Uint8Array): void {
    const link = this.#state.active;
    if (link === undefined) {
      return;
    }
    const fitted = fit(datagram, Math.min(link.carrier.longestDatagram, this.#longest ?? Infinity));
    if (fitted === undefined) {
      this.dropped += 1;
      return;
    }
    link.unansweredSince ??= this.#timers.now();
    this.#unanswered = link.hasData ? undefined : fitted.slice();
    link.carrier.send(fitted);
  }

  close(isLast = false): void {
    const { race, active, next } = this.#state;
    this.#state = { kind: ENDED };
    this.#abort.abort();
    this.#running.forEach((timer) => this.#timers.clear(timer));
    race?.cancel();
    [active, next].forEach((link) => link?.carrier.close(isLast));
    this.#closeAbandoned();
  }

  #closeAbandoned(): void {
    this.#abandoned.splice(0).forEach((carrier) => carrier.close());
  }

  get #events(): TransportEvents | undefined {
    return this.#state.kind === ENDED ? undefined : this.#owner;
  }

  /** Starts the timer of a purpose, replacing a running timer of that purpose. */
  #after(ms: number, purpose: Purpose, callback: () => void): void {
    this.#stop(purpose);
    this.#running.set(purpose, this.#timers.set(callback, ms));
  }

  #stop(...purposes: Purpose[]): void {
    for (const purpose of purposes) {
      this.#timers.clear(this.#running.get(purpose));
      this.#running.delete(purpose);
    }
  }

  /** Races the carriers that may take the flow. If a race is already running, the carriers join it. */
  #seek(): void {
    const fitting = this.#names.filter((name) => this.#longest !== Infinity || name === STREAM);
    const responsive = fitting.filter((name) => !this.#unresponsive.has(name));
    const names = responsive.length > 0 ? responsive : fitting;
    const state = this.#state;
    if (state.kind !== LOST_CARRIER) {
      // The first race has no time limit of its own, because the connect timeout covers it.
      this.#state = { kind: RACING, race: this.#startRace(names) };
      return;
    }
    const withinMs = state.interruption.nextAttemptMs();
    if (state.race === undefined) {
      this.#state = { ...state, race: this.#startRace(names, withinMs), next: undefined };
    } else {
      state.race.join(this.#entrants(names), withinMs);
    }
  }

  #startRace(names: readonly CarrierName[], withinMs?: number): Race {
    const owner = {
      onWon: (name: CarrierName, carrier: Carrier) => this.#onWon({ name, carrier, unsent: 0 }),
      onFailed: (close: CarrierClose) => this.#onFailed(close),
    };
    return new Race(this.#entrants(names), owner, this.#timers, withinMs);
  }

  #entrants(names: readonly CarrierName[]): Entrant[] {
    const { flow } = this.#state;
    const url = new URL(this.#url);
    if (flow !== undefined) {
      url.searchParams.set("resume", flow.secret);
    }
    if (this.#names.length > 1) {
      url.searchParams.set("defer", "1");
    }
    const { token, fingerprint, resume: hasControl, webSocket } = this.#settings;
    let fetched: Promise<Announced> | undefined;
    const announced = (): Promise<Announced> => (fetched ??= this.#fetchAnnouncement());
    return names.map((name) => ({
      name,
      open: (events) => carrierKinds[name].open({ url, token, fingerprint, hasControl, webSocket, announced }, events),
    }));
  }

  async #fetchAnnouncement(): Promise<Announced> {
    const announced = await fetchAnnounced(this.#url, this.#abort.signal, this.#timers);
    // The relay may accept a client that resumes while it refuses others.
    if (announced?.refused === undefined) {
      this.#offered = announced ?? this.#offered;
    }
    return this.#offered ?? announced ?? {};
  }

  /** Uses the winner of a race as the first carrier or as the successor. */
  #onWon(link: Link): CarrierEvents {
    const state = this.#state;
    this.#state =
      state.flow === undefined
        ? { kind: ATTACHED, active: link, flow: undefined }
        : { ...(state as Migrating | Lost), race: undefined, next: link };
    return {
      onOpen: () => this.#begin(link),
      onDatagram: (datagram) => this.#onDatagram(link, datagram),
      onControl: (text) => this.#onControl(link, text),
      onClose: (close) => this.#onClose(link, close),
    };
  }

  /** Starts using an open carrier. */
  #begin(link: Link): void {
    if (link === this.#state.next) {
      // The response shows whether the relay still has the flow.
      this.#requestFlow(link);
    } else if (link === this.#state.active) {
      const isFirst = this.#longest === undefined;
      this.#longest ??= isLossy(link) || this.#better(link).length > 0 ? LONGEST_DATAGRAM : Infinity;
      this.#settle(link);
      if (this.#settings.resume && isLossy(link)) {
        this.#requestFlow(link);
      }
      if (isFirst) {
        this.#events?.onTransportOpen();
      } else if (this.#unanswered !== undefined) {
        // The previous carrier did not deliver this datagram.
        link.carrier.send(this.#unanswered);
      }
    }
  }

  /** Repeats the request for the flow until the relay responds, or until it is clear that it will not. */
  #requestFlow(link: Link, count = 1): void {
    // A relay assigns the flow without a request if no other carrier can take it over.
    if (this.#names.length > 1 || isLossy(link)) {
      link.carrier.requestFlow();
    }
    this.#after(FIRST_REQUEST_MS * 2 ** (count - 1), link, () => {
      if (count >= FIRST_REQUESTS && this.#canFallBack(link)) {
        link.carrier.close();
        this.#fallBack(link);
      } else if (count < REQUESTS) {
        this.#requestFlow(link, count + 1);
      } else if (link === this.#state.next) {
        this.#unresponsive.add(link.name);
        if (this.#state.active === undefined) {
          this.#abandoned.push(link.carrier);
        } else {
          // The relay closes the previous carrier when it hands the flow over.
          link.carrier.close();
        }
        this.#onClose(link, lost());
      }
    });
  }

  /** Returns true if a carrier can be replaced without a flow, because nothing has arrived through it. */
  #canFallBack(link: Link): boolean {
    const hasOthers = this.#names.some((name) => name !== link.name && !this.#unresponsive.has(name));
    return link === this.#state.active && this.#state.flow === undefined && link.hasData !== true && hasOthers;
  }

  /** Races the other carriers because nothing arrived through `link`. */
  #fallBack(link: Link): void {
    this.#stop(link, "watch", "upgrade");
    this.#unresponsive.add(link.name);
    this.#state = { kind: RACING };
    this.#seek();
  }

  /** Watches a carrier that has the flow, and schedules attempts with better carriers. */
  #settle(link: Link): void {
    this.#events?.onCarrier?.(link.name === STREAM);
    this.#stop("watch", "upgrade");
    if (this.#settings.resume) {
      this.#watch(link);
    }
    this.#planUpgrade(link);
  }

  #watch(link: Link): void {
    const dueAt = this.#timers.now() + WATCH_MS;
    this.#after(WATCH_MS, "watch", () => {
      const { active, flow } = this.#state;
      if (link !== active) {
        return;
      }
      const now = this.#timers.now();
      const unsent = link.carrier.bufferedAmount;
      // In a hidden tab every check is late, but only the first one may run before queued datagrams are handled.
      const isExcused = now - dueAt > LATE_MS && link.wasExcused !== true;
      if (link.unansweredSince !== undefined && (isExcused || unsent < link.unsent && unsent > FEW_BYTES)) {
        link.unansweredSince = now;
        link.wasExcused ||= isExcused;
      }
      link.unsent = unsent;
      const silentMs = now - (link.unansweredSince ?? Infinity);
      if (silentMs > SILENT_MS && flow !== undefined) {
        this.#abandoned.push(link.carrier);
        this.#lose(link, flow, lost());
        return;
      }
      if (silentMs > SILENT_MS / 3 && (isLossy(link) || flow !== undefined)) {
        // The relay responds to this request even if the server is silent. A relay without flows would forward the text
        // to the server.
        link.carrier.requestFlow();
      }
      this.#watch(link);
    });
  }

  #planUpgrade(link: Link): void {
    const better = this.#better(link);
    if (better.length === 0) {
      this.#upgradeMs = FIRST_UPGRADE_MS;
      return;
    }
    const delay = this.#upgradeMs * (0.5 + Math.random());
    this.#upgradeMs = Math.min(2 * this.#upgradeMs, LONGEST_UPGRADE_MS);
    this.#after(delay, "upgrade", () => {
      const { active, flow } = this.#state;
      if (link === active && flow !== undefined) {
        this.#state = { kind: MIGRATING, active, flow, race: this.#startRace(better, UPGRADE_MS) };
      }
    });
  }

  /** Returns the better carriers, except those that the relay does not offer. */
  #better({ name }: Link): CarrierName[] {
    const offered = this.#offered;
    const better = this.#longest === Infinity ? [] : this.#names.slice(0, this.#names.indexOf(name));
    return offered === undefined ? better : better.filter((other) => other in offered);
  }

  #onDatagram(link: Link, datagram: Uint8Array): void {
    this.#markResponsive(link);
    if (link === this.#state.active || link === this.#state.next) {
      this.#events?.onDatagram(datagram);
    }
  }

  #markResponsive(link: Link): void {
    link.unansweredSince = undefined;
    link.wasExcused = false;
    link.hasData = true;
  }

  /** Handles a control message of the relay. Unknown messages are ignored. */
  #onControl(link: Link, text: string): void {
    this.#markResponsive(link);
    const message = readText(text);
    const notice = readNotice(message);
    if (notice !== undefined) {
      this.#events?.onRelayNotice(notice);
      return;
    }
    const flow = readFlow(message);
    if (flow === undefined || !this.#settings.resume) {
      return;
    }
    const state = this.#state;
    if (link === state.next) {
      this.#onTakenOver(link, flow);
    } else if (state.active !== undefined && link === state.active) {
      this.#state = { ...state, flow };
      this.#hold(link);
    }
  }

  /** Handles the assignment of a flow to a carrier. */
  #hold(link: Link): void {
    this.#stop(link);
    if (link.heldSince === undefined) {
      link.heldSince = this.#timers.now();
      this.#unresponsive.clear();
    }
  }

  /** Handles the response to a successor. It now has the flow, unless the relay has forgotten the flow. */
  #onTakenOver(link: Link, flow: Flow & { resumed: boolean }): void {
    const { kind, active } = this.#state;
    if (flow.resumed) {
      active?.carrier.close();
      this.#closeAbandoned();
      this.#state = { kind: ATTACHED, active: link, flow };
      this.#hold(link);
      this.#settle(link);
      if (kind === LOST_CARRIER) {
        this.#stop("end");
        this.#events?.onResumed();
      }
    } else if (active === undefined) {
      this.#endUnknownFlow();
    } else {
      link.carrier.close();
      this.#onClose(link, lost());
    }
  }

  #onClose(link: Link, close: CarrierClose): void {
    this.#stop(link);
    const { active, next, flow } = this.#state;
    if (link === next) {
      this.#onFailed(close);
    } else if (link === active) {
      // The flow was handed to the successor, or to another connection that resumed it.
      const isReplaced = close.code === TAKEN_OVER && next !== undefined;
      if (close.code === LOST && this.#canFallBack(link)) {
        this.#fallBack(link);
      } else if (flow === undefined || !(isLoss(close) || isReplaced)) {
        this.#end(describeClose(this.#url, close, true));
      } else {
        this.#lose(link, flow, close);
      }
    }
  }

  /** Handles the failure of the successor or of all carriers of a race. */
  #onFailed(close: CarrierClose): void {
    const state = this.#state;
    if (state.kind === MIGRATING) {
      const { active, flow } = state;
      this.#state = { kind: ATTACHED, active, flow };
      this.#planUpgrade(active);
    } else if (state.kind === LOST_CARRIER && close.code === TOKEN_REFUSED) {
      // A client with a valid secret needs no token, so the refused token means that the relay has forgotten the flow.
      this.#endUnknownFlow();
    } else if (state.kind === LOST_CARRIER && canRetryResume(close)) {
      this.#state = { ...state, race: undefined, next: undefined };
      this.#retry(close);
    } else {
      this.#end(describeClose(this.#url, close, state.kind === LOST_CARRIER));
    }
  }

  /** Handles the loss of the flow's carrier. A race for a better carrier, or its winner, continues. */
  #lose(link: Link, flow: Flow, close: CarrierClose): void {
    const now = this.#timers.now();
    const interruption = new Interruption(now, flow.withinMs, now - (link.heldSince ?? now));
    this.#state = { ...(this.#state as Attached | Migrating), kind: LOST_CARRIER, active: undefined, flow, interruption };
    this.#after(flow.withinMs, "end", () => this.#end(describeClose(this.#url, close, true)));
    this.#owner.onInterrupted();
    this.#retry(close);
  }

  /**
   * Races for the flow after a pause, if the relay keeps the flow that long. A race that is already running continues
   * without a pause.
   */
  #retry(close: CarrierClose): void {
    const state = this.#state;
    // The application may have closed the transport in the meantime.
    if (state.kind !== LOST_CARRIER || state.next !== undefined) {
      return;
    }
    const delay = state.interruption.nextDelay(this.#timers.now());
    this.#stop("retry");
    if (delay === undefined) {
      this.#end(describeClose(this.#url, close, true));
    } else if (delay === 0 || state.race !== undefined) {
      // Not with a timer of 0 ms, because timers of a background tab fire only once a second.
      this.#seek();
    } else {
      this.#after(delay, "retry", () => this.#seek());
    }
  }

  /** Closes without a relay code, so that `isTransient` allows a new connection. */
  #endUnknownFlow(): void {
    this.#end({ code: "relay-closed", reason: "the relay no longer has the flow of the connection" });
  }

  #end(end: TransportEnd): void {
    const events = this.#events;
    this.close();
    events?.onClose(end);
  }
}

/**
 * Shortens a datagram to the limit of a path; `undefined` if that is impossible. Only RakNet's first request can be
 * cut: it is padded to the MTU that it proposes, and the server proposes no more than it receives.
 */
function fit(datagram: Uint8Array, longest: number): Uint8Array | undefined {
  if (datagram.length <= longest) {
    return datagram;
  }
  return datagram[0] === REQUEST_1 && longest >= MIN_REQUEST_1 ? datagram.subarray(0, longest) : undefined;
}

/** Returns true if a carrier loses datagrams, like UDP. */
function isLossy({ name }: Link): boolean {
  return name !== STREAM;
}

/** Starts opening the transport for a URL. */
export function openTransport(settings: TransportSettings, events: TransportEvents): Transport {
  return (directTransport(new URL(settings.url)) ?? openRelay)(settings, events);
}
