/**
 * Datagrams to a server through a relay. Several carriers lead there and race for the flow of the relay; another carrier can
 * continue the flow, so that the server notices no more than lost datagrams. That happens when the carrier is lost, and when
 * a better one opens after all.
 */

import type { Timers } from "../waits.js";
import { PLATFORM_TIMERS } from "../waits.js";
import type { Announced } from "./announced.js";
import { fetchAnnounced } from "./announced.js";
import type { Carrier, CarrierEvents, CarrierName } from "./carrier.js";
import { LONGEST_DATAGRAM } from "./carrier.js";
import type { CarrierClose, TransportEnd } from "./close.js";
import { describeClose, isLoss, LOST, lost, mayComeBack } from "./close.js";
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
  RACING,
  readFlow,
  readNotice,
  readText,
  REQUEST_1,
  REQUEST_1_LEAST,
  REQUESTS,
  SILENT_MS,
  STREAM,
  TAKEN_OVER,
  TOKEN_REFUSED,
  UPGRADE_MS,
  WATCH_MS,
} from "./flow.js";
import type { Entrant } from "./race.js";
import { carrierKinds, present, Race } from "./race.js";
import type { Transport, TransportEvents, TransportSettings } from "./transport.js";
import { directTransport } from "./transport.js";

/** A carrier that has opened. */
interface Link {
  name: CarrierName;
  carrier: Carrier;
  /** When something was sent that nothing has followed yet. */
  unansweredSince?: number | undefined;
  /** True if its silence was attributed to a blocked page since something arrived last. */
  wasExcused?: boolean;
  /** The bytes that were unsent at the last check. */
  unsent: number;
  /** True if anything has arrived by it. */
  isHeard?: boolean;
  /** When the relay named the flow that it has. */
  heldSince?: number;
}

/** The carrier that is to continue the flow: the race for it, or the winner, which has requested the flow. */
type Successor = { race: Race; next?: undefined } | { race?: undefined; next: Link };
type NoSuccessor = { race?: undefined; next?: undefined };

/** No carrier is open, and there is no flow yet. Without a race the transport is about to end. */
interface Racing {
  kind: typeof RACING;
  race?: Race;
  active?: undefined;
  next?: undefined;
  flow?: undefined;
}

/** A carrier passes datagrams. The relay names the flow later, or never. */
interface Attached extends NoSuccessor {
  kind: typeof ATTACHED;
  active: Link;
  flow: Flow | undefined;
}

/** A carrier passes datagrams, and a better one is to continue the flow. */
type Migrating = { kind: typeof MIGRATING; active: Link; flow: Flow } & Successor;

/** The carrier of the flow is gone, and the relay keeps the flow for another one, which is sought, at the latest by a timer. */
type Lost = { kind: typeof LOST_CARRIER; active?: undefined; flow: Flow; interruption: Interruption } & (Successor | NoSuccessor);

/** Everything is closed, and no callback follows. */
interface Ended extends NoSuccessor {
  kind: typeof ENDED;
  active?: undefined;
  flow?: undefined;
}

type State = Racing | Attached | Migrating | Lost | Ended;

/** The purpose of a timer: a link has one while it requests its flow. */
type Purpose = "retry" | "end" | "watch" | "upgrade" | Link;

/** Starts to open carriers to a relay. */
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
 *        nothing arrives by it    │  │    it takes over, or fails    │
 *                                 │  │                               │
 *                the carrier is   │  │  another carrier              │
 *                lost or silent   v  │  has the flow                 │
 *                                 Lost <─────────────────────────────┘
 *                                       the carrier is lost or silent
 * ```
 *
 * Every state leads to Ended: by `close`; Racing when all carriers failed; Attached and Migrating when the relay closes the
 * carrier for good; Lost when the relay refuses or has forgotten the flow, or does not keep it any longer.
 */
export class RelayTransport implements Transport {
  /** A WebSocket of the platform copies what it sends, as its standard says; the other carriers do, too. */
  readonly sendsAtOnce: boolean;
  readonly #settings: TransportSettings;
  readonly #url: URL;
  /** In the order of preference. */
  readonly #names: readonly CarrierName[];
  readonly #timers: Timers;
  readonly #owner: TransportEvents;
  readonly #abort = new AbortController();
  #state: State = { kind: RACING };
  /**
   * The unresponsive carriers. The relay may have given one of them the flow, which its close would end: they are closed once
   * another one has it.
   */
  readonly #abandoned: Carrier[] = [];
  /** The kinds that have opened and by which nothing arrived, since a carrier had the flow. */
  readonly #unresponsive = new Set<CarrierName>();
  /** The last datagram that was sent, if nothing has arrived by its carrier. */
  #unheard: Uint8Array | undefined;
  /** The longest datagram that is sent, chosen with the first carrier. */
  #longest: number | undefined;
  /** The last announcement of the relay. */
  #offered: Announced | undefined;
  #upgradeMs = FIRST_UPGRADE_MS;
  readonly #running = new Map<Purpose, unknown>();
  /** Datagrams that were too long for the path. */
  dropped = 0;

  constructor(settings: TransportSettings, events: TransportEvents, timers: Timers) {
    this.#settings = settings;
    this.sendsAtOnce = settings.webSocket === undefined;
    this.#url = new URL(settings.url);
    this.#names = present(settings.carriers, settings.webSocket);
    this.#timers = timers;
    this.#owner = events;
    if (this.#names.length > 0) {
      this.#seek();
    } else {
      const reason = `there is no ${settings.carriers.join(", ")} here`;
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
    this.#unheard = link.isHeard ? undefined : fitted.slice();
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

  /** Sets the one timer for a purpose. */
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

  /** Races the carriers that may have the flow. */
  #seek(): void {
    const fitting = this.#names.filter((name) => this.#longest !== Infinity || name === STREAM);
    const names = fitting.filter((name) => !this.#unresponsive.has(name));
    const race = this.#startRace(names.length > 0 ? names : fitting);
    const state = this.#state;
    this.#state = state.kind === LOST_CARRIER ? { ...state, race, next: undefined } : { kind: RACING, race };
  }

  #startRace(names: readonly CarrierName[]): Race {
    const state = this.#state;
    const url = new URL(this.#url);
    if (state.flow !== undefined) {
      url.searchParams.set("resume", state.flow.secret);
    }
    if (this.#names.length > 1) {
      url.searchParams.set("defer", "1");
    }
    const { token, fingerprint, resume: hasControl, webSocket } = this.#settings;
    let asked: Promise<Announced> | undefined;
    const announced = (): Promise<Announced> => (asked ??= this.#ask());
    const entrants = names.map((name): Entrant => ({
      name,
      open: (events) => carrierKinds[name].open({ url, token, fingerprint, hasControl, webSocket, announced }, events),
    }));
    const owner = {
      onWon: (name: CarrierName, carrier: Carrier) => this.#onWon({ name, carrier, unsent: 0 }),
      onFailed: (close: CarrierClose) => this.#onFailed(close),
    };
    // The first race ends with the attempt to connect, and the caller keeps its time.
    const withinMs = state.kind === LOST_CARRIER ? state.interruption.nextAttemptMs() : state.flow && UPGRADE_MS;
    return new Race(entrants, owner, this.#timers, withinMs);
  }

  async #ask(): Promise<Announced> {
    const said = await fetchAnnounced(this.#url, this.#abort.signal, this.#timers);
    // The relay may accept a client that returns to its flow where it refuses others.
    if (said?.refused === undefined) {
      this.#offered = said ?? this.#offered;
    }
    return this.#offered ?? said ?? {};
  }

  /** Takes the winner of a race, which is open: as the first carrier, or as the successor of the one before. */
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

  /** Begins to use a carrier that is open. */
  #begin(link: Link): void {
    if (link === this.#state.next) {
      // The answer shows whether the relay still has the flow.
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
      } else if (this.#unheard !== undefined) {
        // The carrier before did not pass it on.
        link.carrier.send(this.#unheard);
      }
    }
  }

  /** Requests the flow until the relay names it or there is no hope. */
  #requestFlow(link: Link, count = 1): void {
    // Without another carrier the relay names it unasked.
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
          // The relay closes the one before when it gives the flow to another.
          link.carrier.close();
        }
        this.#onClose(link, lost());
      }
    });
  }

  /** True if a carrier that has opened can be replaced, because the server has not received anything by it. */
  #canFallBack(link: Link): boolean {
    const hasOthers = this.#names.some((name) => name !== link.name && !this.#unresponsive.has(name));
    return link === this.#state.active && this.#state.flow === undefined && link.isHeard !== true && hasOthers;
  }

  /** Races others in place of a carrier by which nothing arrived. */
  #fallBack(link: Link): void {
    this.#stop(link, "watch", "upgrade");
    this.#unresponsive.add(link.name);
    this.#state = { kind: RACING };
    this.#seek();
  }

  /** A carrier has the flow: watches it, and plans to try a better one. */
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
      // A hidden tab is late at every check, of which only the first may precede datagrams that are queued.
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
        // The relay answers, whatever the server does. A relay without flows would pass a text on to the server.
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
        this.#state = { kind: MIGRATING, active, flow, race: this.#startRace(better) };
      }
    });
  }

  /** The carriers that are better than one, as far as the relay is not known to be without them. */
  #better({ name }: Link): CarrierName[] {
    const offered = this.#offered;
    const better = this.#longest === Infinity ? [] : this.#names.slice(0, this.#names.indexOf(name));
    return offered === undefined ? better : better.filter((other) => other in offered);
  }

  #onDatagram(link: Link, datagram: Uint8Array): void {
    this.#onHeard(link);
    if (link === this.#state.active || link === this.#state.next) {
      this.#events?.onDatagram(datagram);
    }
  }

  #onHeard(link: Link): void {
    link.unansweredSince = undefined;
    link.wasExcused = false;
    link.isHeard = true;
  }

  /** Handles a control message of the relay. An unknown one is ignored. */
  #onControl(link: Link, text: string): void {
    this.#onHeard(link);
    const said = readText(text);
    const notice = readNotice(said);
    if (notice !== undefined) {
      this.#events?.onRelayNotice(notice);
      return;
    }
    const flow = readFlow(said);
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

  /** The relay has named the flow of a carrier. */
  #hold(link: Link): void {
    this.#stop(link);
    if (link.heldSince === undefined) {
      link.heldSince = this.#timers.now();
      this.#unresponsive.clear();
    }
  }

  /** The relay has answered the request of a successor: it has the flow, or the relay does not know the flow any more. */
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
      this.#endForgotten();
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
      // The flow was taken over by the successor, or else by another connection, which goes on with it.
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

  /** No carrier of a race has opened, or the successor has failed. */
  #onFailed(close: CarrierClose): void {
    const state = this.#state;
    if (state.kind === MIGRATING) {
      const { active, flow } = state;
      this.#state = { kind: ATTACHED, active, flow };
      this.#planUpgrade(active);
    } else if (state.kind === LOST_CARRIER && close.code === TOKEN_REFUSED) {
      // A secret that the relay knows needs no token, and the token may have expired since.
      this.#endForgotten();
    } else if (state.kind === LOST_CARRIER && mayComeBack(close)) {
      this.#state = { ...state, race: undefined, next: undefined };
      this.#retry(close);
    } else {
      this.#end(describeClose(this.#url, close, state.kind === LOST_CARRIER));
    }
  }

  /** The carrier that had the flow is gone. A successor that has requested the flow goes on. */
  #lose(link: Link, flow: Flow, close: CarrierClose): void {
    const now = this.#timers.now();
    this.#state.race?.cancel();
    const interruption = new Interruption(now, flow.withinMs, now - (link.heldSince ?? now));
    this.#state = { ...(this.#state as Attached | Migrating), kind: LOST_CARRIER, active: undefined, race: undefined, flow, interruption };
    this.#after(flow.withinMs, "end", () => this.#end(describeClose(this.#url, close, true)));
    this.#owner.onInterrupted();
    this.#retry(close);
  }

  /** Races for the flow, after a pause that grows, unless the relay does not keep the flow until then. */
  #retry(close: CarrierClose): void {
    const state = this.#state;
    // The application may have closed it.
    if (state.kind !== LOST_CARRIER || state.next !== undefined) {
      return;
    }
    const delay = state.interruption.nextDelay(this.#timers.now());
    this.#stop("retry");
    if (delay === undefined) {
      this.#end(describeClose(this.#url, close, true));
    } else if (delay === 0) {
      // Without a timer: those of a tab in the background fire once a second.
      this.#seek();
    } else {
      this.#after(delay, "retry", () => this.#seek());
    }
  }

  /** Without a code of the relay, so that `isTransient` allows another connection. */
  #endForgotten(): void {
    this.#end({ code: "relay-closed", reason: "the relay no longer knew the flow of the connection" });
  }

  #end(end: TransportEnd): void {
    const events = this.#events;
    this.close();
    events?.onClose(end);
  }
}

/**
 * The datagram as a path takes it; `undefined` if it does not. The first request of RakNet is padded to the MTU that it
 * proposes, so that it is cut, and the server proposes no more than what arrives.
 */
function fit(datagram: Uint8Array, longest: number): Uint8Array | undefined {
  if (datagram.length <= longest) {
    return datagram;
  }
  return datagram[0] === REQUEST_1 && longest >= REQUEST_1_LEAST ? datagram.subarray(0, longest) : undefined;
}

/** True if a carrier loses datagrams, as UDP does. */
function isLossy({ name }: Link): boolean {
  return name !== STREAM;
}

/** Starts to open the transport that its URL names. */
export function openTransport(settings: TransportSettings, events: TransportEvents): Transport {
  return (directTransport(new URL(settings.url)) ?? openRelay)(settings, events);
}
