/**
 * A carrier of datagrams between a page and a relay: its interface, its limits and its end, and the announcement of a
 * relay.
 */

import type { TransportName, WebSocketConstructor } from "../types.js";

/** The carriers to a relay in order of preference: those without retransmission before the stream. */
export const CARRIERS = ["webtransport", "webrtc", "websocket"] as const satisfies readonly TransportName[];
export type CarrierName = (typeof CARRIERS)[number];

/** The subprotocol of a relay that sends control messages. */
export const CONTROL_PROTOCOL = "rakwire.relay.1";
/** The only control message of a client: requests the message `flow`, and opens a flow that was deferred. */
export const FLOW_REQUEST = '{"type":"flow"}';
/**
 * The maximum number of bytes that a carrier may have accepted and not sent. Congestion control can no longer delay
 * them.
 */
export const MAX_BUFFERED_BYTES = 64 * 1024;
/**
 * The longest datagram of carriers over UDP in bytes. Safari accepts as much in WebTransport, and every relay fits it
 * into one QUIC packet; it also fits one SCTP packet, so that no loss of a fragment loses the datagram. RakNet's MTU is
 * 28 bytes more, 1,052, and is chosen once: a WebSocket also keeps to it if a carrier over UDP may take the flow later.
 */
export const LONGEST_DATAGRAM = 1_024;
/**
 * The longest time a datagram may wait in the browser, in milliseconds. An older one is useless, and is resent if it is
 * reliable.
 */
export const MAX_AGE_MS = 500;
/** The maximum number of datagrams waiting in the browser in each direction. */
export const MAX_WAITING = 256;
/** The Connection Attempt Delay recommended by RFC 8305, in milliseconds. */
export const HEAD_START_MS = 250;
/** A WebSocket yields for its own opening time divided by this number, up to a maximum. */
export const YIELDING_DIVISOR = 3;
export const LONGEST_YIELD_MS = 250;

/** The code of a lost connection. */
export const LOST = 1006;
/** The code of a connection closed by the client. */
export const NORMAL_CLOSURE = 1000;
/** The reason of a relay that closes with 4403 because the address is banned. */
const BANNED = "this address is banned";
/** The code of a relay that received nothing for too long. */
const UNRESPONSIVE = 4408;

/** The WebTransport endpoint of a relay. */
export interface AnnouncedWebTransport {
  /** The UDP port, at the host of the relay. */
  port: number;
  path: string;
  /** SHA-256 of the certificates in base64; empty if a certificate authority signed them. */
  certificate_hashes: string[];
}

/** The WebRTC data channel endpoint of a relay. */
export interface AnnouncedWebRtc {
  /** The UDP port. */
  port: number;
  /** SHA-256 of the certificate, as pairs of hexadecimal digits with colons. */
  fingerprint: string;
  /** The addresses of the relay, if they differ from the host of its URL. */
  addresses?: string[];
}

/** The transports of a relay, or the reason it refuses this page. */
export interface Announced {
  refused?: CarrierClose;
  /** The path of the WebSocket, relative to the announcement. */
  websocket?: { path: string };
  webtransport?: AnnouncedWebTransport;
  webrtc?: AnnouncedWebRtc;
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
  /** The callbacks, which may be replaced while it is open; `undefined` after its end. */
  events: CarrierEvents | undefined;
  /** True if it accepts another datagram now. */
  readonly hasRoom: boolean;
  /** The number of bytes accepted and not sent. */
  readonly bufferedAmount: number;
  /** The longest datagram that it transmits in both directions. */
  readonly longestDatagram: number;
  send(datagram: Uint8Array): void;
  /** Requests the message `flow`. Repeat it on a carrier that loses messages. */
  requestFlow(): void;
  /**
   * Closes the carrier and its flow, without further callbacks. Datagrams sent before are still transmitted; if
   * `isLast`, only as far as possible within the current task.
   */
  close(isLast?: boolean): void;
}

/** The settings of a carrier. */
export interface CarrierRequest {
  /** The URL of the relay for WebSockets, with all parameters but the token. */
  url: URL;
  token: string | undefined;
  /** True to receive control messages. */
  hasControl: boolean;
  webSocket: WebSocketConstructor | undefined;
  /** The fingerprint of the certificate for data channels, if the caller knows it. */
  fingerprint: string | undefined;
  /** Returns the announcement of the relay. */
  announced(): Promise<Announced>;
}

/** An implementation of a carrier. */
export interface CarrierKind {
  /** True if the platform supports it. */
  isSupported(webSocket: WebSocketConstructor | undefined): boolean;
  open(request: CarrierRequest, events: CarrierEvents): Carrier;
}

/** Closes a carrier that has ended by itself, and calls back. */
export function endCarrier(carrier: Carrier, close: CarrierClose): void {
  const { events } = carrier;
  carrier.close();
  events?.onClose(close);
}

/** The end of a carrier: a close code of the relay, or {@link LOST}. */
export interface CarrierClose {
  code: number;
  reason: string;
}

/** The end of a lost carrier, with an optional reason. */
export function lost(reason: unknown = ""): CarrierClose {
  return { code: LOST, reason: String(reason) };
}

/** The end of a transport. */
export interface TransportEnd {
  code: "relay-closed" | "relay-unreachable" | "server-unreachable" | "no-transport" | "origin-refused" | "banned" | "incompatible-protocol";
  reason: string;
  /** The close code of the relay, if any. */
  relayCode?: number;
}

/** The close codes of a relay that have an error code of their own, see `docs/relay-protocol.md`. */
const CODES: Readonly<Record<number, TransportEnd["code"]>> = {
  4403: "origin-refused",
  4406: "incompatible-protocol",
  4502: "server-unreachable",
};

/** Converts the end of a carrier to a code and a description. */
export function describeClose(url: URL, { code, reason }: CarrierClose, wasOpen: boolean): TransportEnd {
  // Every other code was sent by the relay.
  if (!wasOpen && code === LOST) {
    const why = reason === "" ? "" : `: ${reason}`;
    return { code: "relay-unreachable", reason: `the relay at ${url.host} cannot be reached${why}`, relayCode: code };
  }
  const isLost = reason === "" || code === LOST;
  const description = isLost ? `connection to the relay lost (code ${code})` : `relay closed: ${reason} (code ${code})`;
  return { code: reason === BANNED ? "banned" : (CODES[code] ?? "relay-closed"), reason: description, relayCode: code };
}

/** Codes of a relay without room for a client at the moment. The flow of a returning client is kept. */
const LATER: readonly number[] = [1013, 4429];
/**
 * Codes of a proxy that restarts, fails or lost the relay: going away, internal error, service restart, try again
 * later, bad gateway (the registry of RFC 6455 section 11.7). The flow is not affected.
 */
const BY_PROXIES: readonly number[] = [1001, 1011, 1012, 1013, 1014];
/** Reasons with which a relay ends the flow itself despite one of these codes, see `docs/relay-protocol.md`. */
const BY_THE_RELAY: readonly string[] = ["relay is shutting down", "UDP socket to the game server failed"];

/** Returns true if another carrier may continue the flow after this end. */
export function isLoss({ code, reason }: CarrierClose): boolean {
  return code === LOST || code === UNRESPONSIVE || (BY_PROXIES.includes(code) && !BY_THE_RELAY.includes(reason));
}

/** Returns true if another attempt to continue the flow may succeed after one that ended like this. */
export function mayComeBack(close: CarrierClose): boolean {
  return isLoss(close) || LATER.includes(close.code);
}
