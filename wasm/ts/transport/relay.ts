/**
 * Datagrams over a WebSocket to a relay: one binary message is one datagram. A WebSocket that is lost is opened again, and
 * goes on with the same flow of the relay, so that the server notices no more than lost datagrams.
 */

import { RakwireError } from "../errors.js";
import type { WebSocketConstructor, WebSocketLike } from "../types.js";
import { readDrops } from "./relay-drops.js";
import type { Transport, TransportEnd, TransportEvents, TransportSettings } from "./transport.js";

/** The limit for buffered bytes in the WebSocket: congestion control cannot hold them back any more. */
const MAX_BUFFERED_BYTES = 64 * 1024;
const NORMAL_CLOSURE = 1000;
/** The codes of connections that were lost: by the network, and by a relay that heard nothing. Others are meant. */
const LOST = [1006, 4408];
/** The subprotocol of a relay that says which flow a WebSocket has. */
const SUBPROTOCOL = "rakwire.relay.1";
/** What a token is preceded by among the subprotocols, where no log has it. */
const TOKEN = "rakwire.token.";
/** The time before the second attempt to open a WebSocket again, the first being made at once; it doubles until the longest. */
const SECOND_DELAY_MS = 100;
const LONGEST_DELAY_MS = 2_000;
/** A WebSocket that does not last so long is replaced with a delay, or a way that never holds would be tried incessantly. */
const LASTING_MS = 1_000;
/** The longest text that is read, and the longest time for which a relay is sought again, whatever the relay says. */
const MAX_TEXT = 4_096;
const MAX_WITHIN_MS = 600_000;

/** How a WebSocket ended. */
interface Close {
  code: number;
  reason: string;
}

/** A flow of the relay, which another WebSocket can go on with. */
interface Flow {
  secret: string;
  /** For so long after a WebSocket was lost. */
  withinMs: number;
}

/** The WebSocket class that the caller gives or the platform has. */
export function readWebSocket(given: WebSocketConstructor | undefined): WebSocketConstructor {
  const webSocket = given ?? (globalThis.WebSocket as WebSocketConstructor | undefined);
  if (webSocket === undefined) {
    throw new RakwireError("no-websocket", "there is no global WebSocket; give one as the option webSocket");
  }
  return webSocket;
}

/** Starts to open a WebSocket. */
export function openRelay(settings: TransportSettings, events: TransportEvents): Transport {
  return new RelayTransport(settings, events);
}

class RelayTransport implements Transport {
  /** A WebSocket of the platform copies what it sends, as its standard says. */
  readonly sendsAtOnce: boolean;
  readonly #url: URL;
  readonly #protocols: string[];
  readonly #resumes: boolean;
  readonly #WebSocket: WebSocketConstructor;
  #socket: WebSocketLike;
  #isOpen = false;
  #wasOpen = false;
  #events: TransportEvents | undefined;
  #flow: Flow | undefined;
  /** When the WebSocket was lost that another one shall replace. */
  #lostAt: number | undefined;
  #delayMs = 0;
  /** When the relay said which flow the WebSocket has. */
  #heldSince = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor({ url, token, resume, webSocket }: TransportSettings, events: TransportEvents) {
    this.#url = new URL(url);
    this.#resumes = resume;
    // A relay that is offered a subprotocol has to choose one, or browsers close the WebSocket.
    this.#protocols = [
      ...(resume || token !== undefined ? [SUBPROTOCOL] : []),
      ...(token !== undefined ? [TOKEN + token] : []),
    ];
    this.#WebSocket = readWebSocket(webSocket);
    this.sendsAtOnce = webSocket === undefined;
    this.#events = events;
    this.#socket = this.#open();
  }

  get hasRoom(): boolean {
    return this.#isOpen && this.#socket.bufferedAmount < MAX_BUFFERED_BYTES;
  }

  get bufferedAmount(): number {
    return this.#socket.bufferedAmount;
  }

  send(datagram: Uint8Array): void {
    this.#socket.send(datagram);
  }

  close(): void {
    this.#events = undefined;
    this.#isOpen = false;
    clearTimeout(this.#timer);
    this.#socket.close(NORMAL_CLOSURE);
  }

  #open(): WebSocketLike {
    const url = new URL(this.#url);
    if (this.#flow !== undefined) {
      url.searchParams.set("resume", this.#flow.secret);
    }
    const socket = new this.#WebSocket(url.href, this.#protocols);
    socket.binaryType = "arraybuffer";
    socket.addEventListener("open", () => {
      this.#isOpen = true;
      // With a flow to go on with, the relay says first whether it still has it.
      if (this.#flow === undefined) {
        this.#wasOpen = true;
        this.#events?.onOpen();
      }
    });
    socket.addEventListener("message", ({ data }: { data: unknown }) => {
      if (data instanceof ArrayBuffer) {
        this.#events?.onDatagram(new Uint8Array(data));
      } else if (typeof data === "string") {
        this.#onText(data);
      }
    });
    socket.addEventListener("close", (event: Close) => this.#onClose(event));
    // Every error is followed by a close event, which has more details.
    socket.addEventListener("error", () => undefined);
    return socket;
  }

  /** What the relay says of itself. A text that is none of its own is ignored. */
  #onText(text: string): void {
    const said = readText(text);
    const drops = readDrops(said);
    if (drops !== undefined) {
      this.#events?.onRelayDrops(drops);
      return;
    }
    const flow = readFlow(said);
    if (flow === undefined || !this.#resumes) {
      return;
    }
    this.#flow = flow;
    this.#heldSince = performance.now();
    if (this.#lostAt === undefined) {
      return;
    }
    if (!flow.resumed) {
      this.#end({ code: "relay-closed", reason: "the relay no longer knew the flow of the connection" });
      return;
    }
    this.#lostAt = undefined;
    this.#events?.onResumed();
  }

  #onClose({ code, reason }: Close): void {
    this.#isOpen = false;
    if (this.#flow === undefined || !LOST.includes(code)) {
      this.#end(describeClose(this.#url, { code, reason }, this.#wasOpen));
      return;
    }
    const now = performance.now();
    if (this.#lostAt === undefined) {
      this.#lostAt = now;
      this.#delayMs = now - this.#heldSince >= LASTING_MS ? 0 : SECOND_DELAY_MS;
      this.#events?.onInterrupted();
    }
    // Many pages that lost the same relay shall not come back at the same moment.
    const delay = this.#delayMs * (0.5 + Math.random());
    if (now + delay - this.#lostAt > this.#flow.withinMs) {
      this.#end(describeClose(this.#url, { code, reason }, true));
      return;
    }
    this.#delayMs = Math.min(Math.max(2 * this.#delayMs, SECOND_DELAY_MS), LONGEST_DELAY_MS);
    if (delay === 0) {
      // Without a timer: those of a tab in the background fire once a second.
      this.#reopen();
    } else {
      this.#timer = setTimeout(() => this.#reopen(), delay);
    }
  }

  #reopen(): void {
    if (this.#events !== undefined) {
      this.#socket = this.#open();
    }
  }

  #end(end: TransportEnd): void {
    const events = this.#events;
    this.close();
    events?.onClose(end);
  }
}

/** The object in a text of the relay; an empty one if there is none. */
function readText(text: string): object {
  try {
    const said: unknown = text.length > MAX_TEXT ? undefined : JSON.parse(text);
    return typeof said === "object" && said !== null ? said : {};
  } catch {
    return {};
  }
}

/** The flow that the relay names, and whether it is the one before. */
function readFlow(said: object): (Flow & { resumed: boolean }) | undefined {
  const { type, resume, resume_within_ms: withinMs, resumed } = said as Record<string, unknown>;
  return type === "flow" && typeof resume === "string" && typeof withinMs === "number"
    ? { secret: resume, withinMs: Math.min(withinMs, MAX_WITHIN_MS), resumed: resumed === true }
    : undefined;
}

/** The code and the description of the end of a WebSocket. */
function describeClose(url: URL, { code, reason }: Close, wasOpen: boolean): TransportEnd {
  if (!wasOpen) {
    return { code: "relay-unreachable", reason: `the relay at ${url.host} cannot be reached`, relayCode: code };
  }
  const told = reason === "" ? `connection to the relay lost (code ${code})` : `relay closed: ${reason} (code ${code})`;
  return { code: "relay-closed", reason: told, relayCode: code };
}
