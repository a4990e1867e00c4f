/**
 * Datagrams to a server by way of a relay. Several carriers lead there: they race, one has the flow of the relay, and another
 * can go on with it, so that the server notices no more than lost datagrams. It does when its carrier is lost, and when a
 * better one opens after all.
 */

import type { Announced } from "./announced.js";
import { fetchAnnounced } from "./announced.js";
import type { Carrier, CarrierClose, CarrierEvents, CarrierName, Timers } from "./carrier.js";
import { describeClose, fit, isLoss, LOST, mayComeBack, PLATFORM_TIMERS } from "./carrier.js";
import type { Flow } from "./flow.js";
import { Interruption, readFlow, readNotice, readText } from "./flow.js";
import type { Entrant } from "./race.js";
import { carrierKinds, present, Race } from "./race.js";
import type { Transport, TransportEnd, TransportEvents, TransportSettings } from "./transport.js";
import { directTransport } from "./transport.js";

/** The code of a relay that wants another token, or one at all. */
const TOKEN_REFUSED = 4401;
/** The code of a connection whose flow another one has taken over. */
const TAKEN_OVER = 4409;
/** The time before a flow is asked for again; it doubles. */
const FIRST_REQUEST_MS = 250;
const REQUESTS = 4;
/** Another carrier is tried after so many, which leaves time for the handshake of the protocol. */
const FIRST_REQUESTS = 3;
/** How often it is looked whether a carrier is silent, and for how long it may be. */
const WATCH_MS = 500;
const SILENT_MS = 3_000;
/** What a system takes also where nothing leaves: that so few bytes wait no more is no sign of life. */
const FEW_BYTES = 4_000;
/** A look this late means that the page was blocked or suspended, so that what has come may not have been heard yet. */
const LATE_MS = 250;
/** How long a better carrier may take to open. */
const CLIMB_MS = 30_000;
/** The time before a better carrier is tried again; it doubles until the longest. */
const FIRST_CLIMB_MS = 10_000;
const LONGEST_CLIMB_MS = 300_000;
/** What a better carrier takes, where one may have the flow later: RakNet chooses its MTU once. */
const COMMON_DATAGRAM = 1_024;
/** The carrier that loses nothing and takes datagrams of every length. */
const STREAM: CarrierName = "websocket";

/** A carrier that was opened. */
interface Leg {
  name: CarrierName;
  carrier: Carrier;
  /** When something was sent that nothing has followed yet. */
  unansweredSince: number | undefined;
  /** Whether its silence was taken for that of a page which was blocked, since something came by it last. */
  wasExcused: boolean;
  /** What it had not sent at the last look. */
  unsent: number;
  /** Whether anything has come by it. */
  isHeard: boolean;
}

/** What a timer is for: a leg has one while it asks for its flow. */
type Purpose = "retry" | "end" | "watch" | "climb" | Leg;

/** Starts to open carriers to a relay. */
export function openRelay(settings: TransportSettings, events: TransportEvents): Transport {
  return new RelayTransport(settings, events, PLATFORM_TIMERS);
}

export class RelayTransport implements Transport {
  /** A WebSocket of the platform copies what it sends, as its standard says; the other carriers do, too. */
  readonly sendsAtOnce: boolean;
  readonly #settings: TransportSettings;
  readonly #url: URL;
  /** In the order of preference. */
  readonly #names: readonly CarrierName[];
  readonly #timers: Timers;
  readonly #abort = new AbortController();
  #events: TransportEvents | undefined;
  #race: Race | undefined;
  /** The carrier that has the flow. */
  #active: Leg | undefined;
  /** One that is open and was asked for, to go on with the flow. */
  #next: Leg | undefined;
  /**
   * Those by which nothing comes any more. The relay may have given one of them the flow, which its close would end: they are closed
   * once another one has it.
   */
  readonly #silent: Carrier[] = [];
  #flow: Flow | undefined;
  /** Those that have opened and by which nothing came, since one had the flow. */
  readonly #mute = new Set<CarrierName>();
  /** What was sent last, if nothing has come by its carrier. */
  #unheard: Uint8Array | undefined;
  /** Whether the protocol has begun. */
  #isOpen = false;
  /** The longest datagram that is sent, chosen with the first carrier. */
  #longest: number | undefined;
  /** What the relay said of its transports last. */
  #offered: Announced | undefined;
  /** From the loss of a carrier until another one has the flow. */
  #interruption: Interruption | undefined;
  /** When the relay said which flow the carrier has. */
  #heldSince = 0;
  #climbMs = FIRST_CLIMB_MS;
  readonly #running = new Map<Purpose, unknown>();
  #dropped = 0;

  constructor(settings: TransportSettings, events: TransportEvents, timers: Timers) {
    this.#settings = settings;
    this.sendsAtOnce = settings.webSocket === undefined;
    this.#url = new URL(settings.url);
    this.#names = present(settings.carriers, settings.webSocket);
    this.#timers = timers;
    this.#events = events;
    if (this.#names.length > 0) {
      this.#seek();
    } else {
      const reason = `there is no ${settings.carriers.join(", ")} here`;
      queueMicrotask(() => this.#end({ code: "no-transport", reason }));
    }
  }

  get name(): CarrierName | undefined {
    return this.#active?.name;
  }

  get hasRoom(): boolean {
    return this.#active?.carrier.hasRoom === true;
  }

  get bufferedAmount(): number {
    return this.#active?.carrier.bufferedAmount ?? 0;
  }

  /** Datagrams that were too long for the path. */
  get dropped(): number {
    return this.#dropped;
  }

  send(datagram: Uint8Array): void {
    const leg = this.#active;
    if (leg === undefined) {
      return;
    }
    const fitted = fit(datagram, Math.min(leg.carrier.longestDatagram, this.#longest ?? Infinity));
    if (fitted === undefined) {
      this.#dropped += 1;
      return;
    }
    leg.unansweredSince ??= this.#timers.now();
    this.#unheard = leg.isHeard ? undefined : fitted.slice();
    leg.carrier.send(fitted);
  }

  close(isLast = false): void {
    this.#events = undefined;
    this.#abort.abort();
    this.#running.forEach((timer) => this.#timers.clear(timer));
    this.#race?.cancel();
    [this.#active?.carrier, this.#next?.carrier].forEach((carrier) => carrier?.close(isLast));
    this.#active = this.#next = undefined;
    this.#closeSilent();
  }

  #closeSilent(): void {
    this.#silent.splice(0).forEach((carrier) => carrier.close());
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

  /** Opens the carriers that may have the flow. */
  #seek(): void {
    const fitting = this.#names.filter((name) => this.#longest !== Infinity || name === STREAM);
    const names = fitting.filter((name) => !this.#mute.has(name));
    this.#startRace(names.length > 0 ? names : fitting);
  }

  #startRace(names: readonly CarrierName[]): void {
    this.#race?.cancel();
    const url = new URL(this.#url);
    if (this.#flow !== undefined) {
      url.searchParams.set("resume", this.#flow.secret);
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
      onWon: (name: CarrierName, carrier: Carrier) => this.#onWon({ name, carrier, unansweredSince: undefined, wasExcused: false, unsent: 0, isHeard: false }),
      onFailed: (close: CarrierClose) => this.#onFailed(close),
    };
    // The first one ends with the attempt to connect, whose time the caller knows.
    const withinMs = this.#flow === undefined ? undefined : (this.#interruption?.nextAttemptMs() ?? CLIMB_MS);
    this.#race = new Race(entrants, owner, this.#timers, withinMs);
  }

  async #ask(): Promise<Announced> {
    const said = await fetchAnnounced(this.#url, this.#abort.signal, this.#timers);
    // A flow that is resumed may be let in where others are not.
    if (said?.refused === undefined) {
      this.#offered = said ?? this.#offered;
    }
    return this.#offered ?? said ?? {};
  }

  #onWon(leg: Leg): CarrierEvents {
    this.#race = undefined;
    const isFirst = this.#flow === undefined;
    if (isFirst) {
      this.#active = leg;
    } else {
      this.#next = leg;
    }
    return {
      onOpen: () => this.#begin(leg, isFirst),
      onDatagram: (datagram) => this.#onDatagram(leg, datagram),
      onControl: (text) => this.#onControl(leg, text),
      onClose: (close) => this.#onClose(leg, close),
    };
  }

  /** Begins to use a carrier that is open. */
  #begin(leg: Leg, isFirst: boolean): void {
    if (leg === this.#next) {
      // The answer tells whether the relay still has the flow.
      this.#requestFlow(leg);
    } else if (isFirst && leg === this.#active) {
      this.#longest ??= isLossy(leg) || this.#better(leg).length > 0 ? COMMON_DATAGRAM : Infinity;
      this.#settle(leg);
      if (this.#settings.resume && isLossy(leg)) {
        this.#requestFlow(leg);
      }
      this.#greet(leg);
    }
  }

  /** Lets the protocol begin, or repeats what it has sent by a carrier that did not pass it on. */
  #greet(leg: Leg): void {
    if (!this.#isOpen) {
      this.#isOpen = true;
      this.#events?.onOpen();
    } else if (this.#unheard !== undefined) {
      leg.carrier.send(this.#unheard);
    }
  }

  /** Asks for the flow, until it is told or there is no hope. */
  #requestFlow(leg: Leg, count = 1): void {
    // Without another carrier the relay tells it unasked.
    if (this.#names.length > 1 || isLossy(leg)) {
      leg.carrier.requestFlow();
    }
    this.#after(FIRST_REQUEST_MS * 2 ** (count - 1), leg, () => {
      if (count >= FIRST_REQUESTS && this.#canFallBack(leg)) {
        leg.carrier.close();
        this.#fallBack(leg);
      } else if (count < REQUESTS) {
        this.#requestFlow(leg, count + 1);
      } else if (leg === this.#next) {
        this.#mute.add(leg.name);
        if (this.#active === undefined) {
          this.#silent.push(leg.carrier);
        } else {
          // The relay closes the one before when it gives the flow to another.
          leg.carrier.close();
        }
        this.#onClose(leg, { code: LOST, reason: "" });
      }
    });
  }

  /** Whether a carrier that has opened can be replaced, as the server knows nothing of it yet. */
  #canFallBack(leg: Leg): boolean {
    const hasOthers = this.#names.some((name) => name !== leg.name && !this.#mute.has(name));
    return leg === this.#active && this.#flow === undefined && !leg.isHeard && hasOthers;
  }

  /** Others are tried in place of a carrier by which nothing came. */
  #fallBack(leg: Leg): void {
    this.#active = undefined;
    this.#stop(leg, "watch", "climb");
    this.#mute.add(leg.name);
    this.#seek();
  }

  /** A carrier has the flow: watches it, and looks for a better one. */
  #settle(leg: Leg): void {
    this.#events?.onCarrier?.(leg.name === STREAM);
    this.#stop("watch", "climb");
    if (this.#settings.resume) {
      this.#watch(leg);
    }
    this.#planClimb(leg);
  }

  #watch(leg: Leg): void {
    const dueAt = this.#timers.now() + WATCH_MS;
    this.#after(WATCH_MS, "watch", () => {
      if (leg !== this.#active) {
        return;
      }
      const now = this.#timers.now();
      const unsent = leg.carrier.bufferedAmount;
      // A hidden tab is late at every look, of which only the first may find what has come unheard.
      const isExcused = now - dueAt > LATE_MS && !leg.wasExcused;
      if (leg.unansweredSince !== undefined && (isExcused || unsent < leg.unsent && unsent > FEW_BYTES)) {
        leg.unansweredSince = now;
        leg.wasExcused ||= isExcused;
      }
      leg.unsent = unsent;
      const silentMs = now - (leg.unansweredSince ?? Infinity);
      if (silentMs > SILENT_MS && this.#flow !== undefined) {
        this.#silent.push(leg.carrier);
        this.#active = undefined;
        this.#lose({ code: LOST, reason: "" });
        return;
      }
      if (silentMs > SILENT_MS / 3 && (isLossy(leg) || this.#flow !== undefined)) {
        // The relay answers, whatever the server does. One that has no flows takes no text for what it is.
        leg.carrier.requestFlow();
      }
      this.#watch(leg);
    });
  }

  #planClimb(leg: Leg): void {
    const better = this.#better(leg);
    if (better.length === 0) {
      this.#climbMs = FIRST_CLIMB_MS;
      return;
    }
    const delay = this.#climbMs * (0.5 + Math.random());
    this.#climbMs = Math.min(2 * this.#climbMs, LONGEST_CLIMB_MS);
    this.#after(delay, "climb", () => {
      if (leg === this.#active && this.#flow !== undefined) {
        this.#startRace(better);
      }
    });
  }

  /** The carriers that are better than one, as far as the relay is not known to be without them. */
  #better({ name }: Leg): CarrierName[] {
    const offered = this.#offered;
    const better = this.#longest === Infinity ? [] : this.#names.slice(0, this.#names.indexOf(name));
    return offered === undefined ? better : better.filter((other) => other in offered);
  }

  #onDatagram(leg: Leg, datagram: Uint8Array): void {
    leg.unansweredSince = undefined;
    leg.wasExcused = false;
    leg.isHeard = true;
    if (leg === this.#active || leg === this.#next) {
      this.#events?.onDatagram(datagram);
    }
  }

  /** What the relay says of itself. What is none of its own is ignored. */
  #onControl(leg: Leg, text: string): void {
    leg.unansweredSince = undefined;
    leg.wasExcused = false;
    leg.isHeard = true;
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
    if (leg === this.#next) {
      this.#onTakenOver(leg, flow);
    } else if (leg === this.#active) {
      this.#stop(leg);
      if (this.#flow === undefined) {
        this.#heldSince = this.#timers.now();
        this.#mute.clear();
      }
      this.#flow = flow;
    }
  }

  #onTakenOver(leg: Leg, flow: Flow & { resumed: boolean }): void {
    this.#stop(leg);
    this.#next = undefined;
    if (!flow.resumed) {
      leg.carrier.close();
      if (this.#active === undefined) {
        this.#endForgotten();
      } else {
        this.#planClimb(this.#active);
      }
      return;
    }
    this.#active?.carrier.close();
    this.#closeSilent();
    this.#active = leg;
    this.#flow = flow;
    this.#heldSince = this.#timers.now();
    this.#mute.clear();
    this.#settle(leg);
    if (this.#interruption !== undefined) {
      this.#interruption = undefined;
      this.#stop("end");
      this.#events?.onResumed();
    }
  }

  #onClose(leg: Leg, close: CarrierClose): void {
    this.#stop(leg);
    if (leg === this.#next) {
      this.#next = undefined;
      this.#onFailed(close);
    } else if (leg === this.#active) {
      if (close.code === LOST && this.#canFallBack(leg)) {
        this.#fallBack(leg);
        return;
      }
      this.#active = undefined;
      // It is the next carrier that has taken the flow over, or else another connection, which goes on with it.
      const isReplaced = close.code === TAKEN_OVER && this.#next !== undefined;
      if (this.#flow === undefined || !(isLoss(close) || isReplaced)) {
        this.#end(describeClose(this.#url, close, true));
      } else {
        this.#lose(close);
      }
    }
  }

  /** No carrier was there. */
  #onFailed(close: CarrierClose): void {
    this.#race = undefined;
    if (this.#active !== undefined) {
      this.#planClimb(this.#active);
    } else if (this.#flow !== undefined && close.code === TOKEN_REFUSED) {
      // A secret that the relay knows needs no token, and the token may have expired since.
      this.#endForgotten();
    } else if (this.#flow === undefined || !mayComeBack(close)) {
      this.#end(describeClose(this.#url, close, this.#flow !== undefined));
    } else {
      this.#lose(close);
    }
  }

  /** There is no carrier, until another one has the flow or the flow does not wait any longer. */
  #lose(close: CarrierClose): void {
    const { withinMs } = this.#flow as Flow;
    const now = this.#timers.now();
    if (this.#interruption === undefined) {
      this.#interruption = new Interruption(now, withinMs, now - this.#heldSince);
      this.#after(withinMs, "end", () => this.#end(describeClose(this.#url, close, true)));
      this.#events?.onInterrupted();
    }
    if (this.#next !== undefined || this.#events === undefined) {
      return;
    }
    const delay = this.#interruption.nextDelay(now);
    if (delay === undefined) {
      this.#end(describeClose(this.#url, close, true));
      return;
    }
    this.#stop("retry");
    if (delay === 0) {
      // Without a timer: those of a tab in the background fire once a second.
      this.#seek();
    } else {
      this.#after(delay, "retry", () => this.#seek());
    }
  }

  /** Without a code of the relay, by which `isTransient` tells that another connection may follow. */
  #endForgotten(): void {
    this.#end({ code: "relay-closed", reason: "the relay no longer knew the flow of the connection" });
  }

  #end(end: TransportEnd): void {
    const events = this.#events;
    this.close();
    events?.onClose(end);
  }
}

/** Whether a carrier loses datagrams, as UDP does. */
function isLossy({ name }: Leg): boolean {
  return name !== STREAM;
}

/** Starts to open the transport that its URL names. */
export function openTransport(settings: TransportSettings, events: TransportEvents): Transport {
  return (directTransport(new URL(settings.url)) ?? openRelay)(settings, events);
}
