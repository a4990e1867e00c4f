/** What carries datagrams between a page and a relay: how it opens, which datagrams it takes, and what its end means. */

import type { TransportName, WebSocketConstructor } from "../types.js";
import type { Announced } from "./announced.js";
import type { TransportEnd } from "./transport.js";

/** The carriers to a relay, the preferred ones first: those without retransmission of their own before the stream. */
export const CARRIERS = ["webtransport", "webrtc", "websocket"] as const satisfies readonly TransportName[];
export type CarrierName = (typeof CARRIERS)[number];

/** The subprotocol of a relay that tells control messages. */
export const CONTROL_PROTOCOL = "rakwire.relay.1";
/** The one control message that a client sends: it asks for the message `flow`, and opens a flow that was deferred. */
export const FLOW_REQUEST = '{"type":"flow"}';
/** The code of a connection that was lost. */
export const LOST = 1006;
/** The code of one that its client closed. */
export const NORMAL_CLOSURE = 1000;
/** How many bytes a carrier may have taken and not sent: congestion control cannot hold them back any more. */
export const MAX_BUFFERED_BYTES = 64 * 1024;
/** The id of RakNet's first request, whose length tells the server which MTU the client proposes. */
const REQUEST_1 = 0x05;
/** The id and the magic, and the version of the protocol. */
const REQUEST_1_LEAST = 18;
/** What a relay says to a banned address with 4403. */
const BANNED = "this address is banned";
/** The code of a relay that heard nothing. */
const UNRESPONSIVE = 4408;

/** How a carrier ended: a close code of the relay, or {@link LOST}. */
export interface CarrierClose {
  code: number;
  reason: string;
}

/** The callbacks of a carrier. `onClose` is the last one. */
export interface CarrierEvents {
  onOpen(): void;
  onDatagram(datagram: Uint8Array): void;
  /** A control message of the relay. */
  onControl(text: string): void;
  onClose(close: CarrierClose): void;
}

/** An open carrier, or one that opens. */
export interface Carrier {
  /** Whether it takes another datagram now. */
  readonly hasRoom: boolean;
  /** Bytes that it has taken and not sent. */
  readonly bufferedAmount: number;
  /** The longest datagram that arrives in both directions. */
  readonly longestDatagram: number;
  send(datagram: Uint8Array): void;
  /** Asks for the message `flow`. On a carrier that loses messages it may have to be repeated. */
  requestFlow(): void;
  /**
   * Closes it, and with it the flow that it has, without further callbacks. What was sent before leaves before, as far as it does before
   * the end of the task where nothing comes later.
   */
  close(isLast?: boolean): void;
}

/** What a carrier is opened for. */
export interface CarrierRequest {
  /** The URL of the relay for WebSockets, with all parameters but the token. */
  url: URL;
  token: string | undefined;
  /** Whether control messages are wanted. */
  hasControl: boolean;
  webSocket: WebSocketConstructor | undefined;
  /** The fingerprint of the certificate for data channels, if the caller knows it. */
  fingerprint: string | undefined;
  /** What the relay says of its transports. */
  announced(): Promise<Announced>;
}

/** A way to open a carrier. */
export interface CarrierKind {
  /** Whether the platform has what it takes. */
  isThere(webSocket: WebSocketConstructor | undefined): boolean;
  open(request: CarrierRequest, events: CarrierEvents): Carrier;
}

/** Opens a carrier. One that cannot be made, as a WebSocket that the policy of the page forbids, fails a moment later, as others do. */
export function attempt(open: (events: CarrierEvents) => Carrier, events: CarrierEvents): Carrier {
  try {
    return open(events);
  } catch (error) {
    queueMicrotask(() => events.onClose({ code: LOST, reason: String(error) }));
    const nothing = (): void => undefined;
    return { hasRoom: false, bufferedAmount: 0, longestDatagram: 0, send: nothing, requestFlow: nothing, close: nothing };
  }
}

/**
 * The datagram as a path takes it; `undefined` if it does not. The first request of RakNet is padded to the MTU that it
 * proposes, so that it is cut, and the server proposes no more than what arrives.
 */
export function fit(datagram: Uint8Array, longest: number): Uint8Array | undefined {
  if (datagram.length <= longest) {
    return datagram;
  }
  return datagram[0] === REQUEST_1 && longest >= REQUEST_1_LEAST ? datagram.subarray(0, longest) : undefined;
}

/** The timers of the platform, or of a test; milliseconds. */
export interface Timers {
  now(): number;
  set(callback: () => void, ms: number): unknown;
  clear(timer: unknown): void;
}

export const PLATFORM_TIMERS: Timers = {
  now: () => performance.now(),
  set: (callback, ms) => setTimeout(callback, ms),
  clear: (timer) => clearTimeout(timer as ReturnType<typeof setTimeout>),
};

/** The close codes of a relay with a code of their own here, by `docs/relay-protocol.md`. */
const CODES: Readonly<Record<number, TransportEnd["code"]>> = {
  4403: "origin-refused",
  4406: "incompatible-protocol",
  4502: "server-unreachable",
};

/** The code and the description of the end of a carrier. */
export function describeClose(url: URL, { code, reason }: CarrierClose, wasOpen: boolean): TransportEnd {
  // A code was said by the relay, but for this one.
  if (!wasOpen && code === LOST) {
    const why = reason === "" ? "" : `: ${reason}`;
    return { code: "relay-unreachable", reason: `the relay at ${url.host} cannot be reached${why}`, relayCode: code };
  }
  const isLost = reason === "" || code === LOST;
  const told = isLost ? `connection to the relay lost (code ${code})` : `relay closed: ${reason} (code ${code})`;
  return { code: reason === BANNED ? "banned" : (CODES[code] ?? "relay-closed"), reason: told, relayCode: code };
}

/** The codes of a relay that has no room for a client now: the flow of one that comes back waits. */
const LATER: readonly number[] = [1013, 4429];
/**
 * The codes of a proxy that restarts, fails or has lost the relay: going away, internal error, service restart, try again later,
 * bad gateway (the registry of RFC 6455 section 11.7). The flow knows nothing of it.
 */
const BY_PROXIES: readonly number[] = [1001, 1011, 1012, 1013, 1014];
/** What a relay says with one of these codes when it has ended the flow itself, by `docs/relay-protocol.md`. */
const BY_THE_RELAY: readonly string[] = ["relay is shutting down", "UDP socket to the game server failed"];

/** Whether the flow of a carrier with this end may wait for another carrier. */
export function isLoss({ code, reason }: CarrierClose): boolean {
  return code === LOST || code === UNRESPONSIVE || (BY_PROXIES.includes(code) && !BY_THE_RELAY.includes(reason));
}

/** Whether another attempt to come back may succeed after one with this end. */
export function mayComeBack(close: CarrierClose): boolean {
  return isLoss(close) || LATER.includes(close.code);
}
