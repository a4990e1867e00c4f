/**
 * Carriers of datagrams between a page and a relay: their interface, limits and close codes, and the announcement of a
 * relay.
 */

import type { TransportName, WebSocketConstructor } from "../types.js";

/**
 * The carriers to a relay in order of preference. The WebSocket is last: it runs over TCP, where a lost packet delays
 * all later ones.
 */
export const CARRIERS = ["webtransport", "webrtc", "websocket"] as const satisfies readonly TransportName[];
export type CarrierName = (typeof CARRIERS)[number];

/** The WebSocket subprotocol of relays that send control messages. */
export const CONTROL_PROTOCOL = "rakwire.relay.1";
/** The only control message that a client sends. It requests the message `flow`, and opens a flow that was deferred. */
export const FLOW_REQUEST = '{"type":"flow"}';
/**
 * The maximum number of bytes that a carrier may have accepted and not yet sent. The protocol's congestion control can
 * no longer delay these bytes.
 */
export const MAX_BUFFERED_BYTES = 64 * 1024;
/**
 * The maximum datagram length of carriers over UDP in bytes.
 *
 * - Safari accepts datagrams of this length in WebTransport. One fits into a QUIC packet or an SCTP packet, so it is
 *   never fragmented.
 * - RakNet's MTU includes 28 bytes of IP and UDP headers, so it is 1,052.
 * - RakNet negotiates the MTU only once. A WebSocket therefore also observes this length if a carrier over UDP may
 *   later continue its flow.
 */
export const LONGEST_DATAGRAM = 1_024;
/**
 * The maximum time in milliseconds for which a datagram may be queued in the browser. Older datagrams are dropped; the
 * protocol resends the reliable messages in them.
 */
export const MAX_AGE_MS = 500;
/** The maximum number of datagrams queued in the browser in each direction. */
export const MAX_WAITING = 256;
/** The Connection Attempt Delay that RFC 8305 recommends, in milliseconds. */
export const HEAD_START_MS = 250;
/** An open WebSocket waits for a better carrier for its own opening time divided by this number, up to a maximum. */
export const YIELDING_DIVISOR = 3;
export const LONGEST_YIELD_MS = 250;

/** The close code of a lost connection (RFC 6455 section 7.4.1). */
export const LOST = 1006;
/**
 * Normal closure (RFC 6455 section 7.4.1): sent when the client closes a connection, and assumed for a WebTransport
 * session that closes without a code.
 */
export const NORMAL_CLOSURE = 1000;
/** The close reason of a relay that sends 4403 because it has banned the address. */
const BANNED = "this address is banned";
/** The relay's close code for a client from which it received nothing for too long. */
const UNRESPONSIVE = 4408;

/** The WebTransport endpoint of a relay. */
export interface AnnouncedWebTransport {
  /** The UDP port, at the host of the relay. */
  port: number;
  path: string;
  /** The SHA-256 hashes of the certificates in base64; empty if a certificate authority signed them. */
  certificate_hashes: string[];
}

/** The WebRTC data channel endpoint of a relay. */
export interface AnnouncedWebRtc {
  /** The UDP port. */
  port: number;
  /** The SHA-256 hash of the certificate, as pairs of hexadecimal digits separated by colons. */
  fingerprint: string;
  /** The addresses of the relay, if they differ from the host in its URL. */
  addresses?: string[];
}

/** The transports that a relay announces, or the reason why it refuses this page. */
export interface Announced {
  refused?: CarrierClose;
  /** The path of the WebSocket, relative to the URL of the relay. */
  websocket?: { path: string };
  webtransport?: AnnouncedWebTransport;
  webrtc?: AnnouncedWebRtc;
}

/** The callbacks of a carrier. None follows `onClose`. */
export interface CarrierEvents {
  onOpen(): void;
  onDatagram(datagram: Uint8Array): void;
  /** Called with a control message from the relay. */
  onControl(text: string): void;
  onClose(close: CarrierClose): void;
}

/**
 * A carrier that is open or opening: the WebTransport session, data channel or WebSocket that carries a flow's datagrams
 * between the page and the relay.
 */
export interface Carrier {
  /** The callbacks. The owner may replace them while the carrier is open. `undefined` after it has closed. */
  events: CarrierEvents | undefined;
  /** True if the carrier accepts another datagram now. */
  readonly hasRoom: boolean;
  /** The number of bytes accepted and not yet sent. */
  readonly bufferedAmount: number;
  /** The maximum datagram length in bytes, in both directions. */
  readonly longestDatagram: number;
  send(datagram: Uint8Array): void;
  /** Requests the message `flow`. Repeat it on carriers that lose messages. */
  requestFlow(): void;
  /**
   * Closes the carrier and its flow, without further callbacks. Datagrams sent earlier are still transmitted. If
   * `isLast`, only the datagrams that can be sent in the current task are transmitted.
   */
  close(isLast?: boolean): void;
}

/** Parameters for opening a carrier. */
export interface CarrierRequest {
  /** The URL of the relay for WebSockets, with all parameters except the token. */
  url: URL;
  token: string | undefined;
  /** True to receive control messages. */
  hasControl: boolean;
  webSocket: WebSocketConstructor | undefined;
  /** The fingerprint of the data channel certificate, if the caller passed it. */
  fingerprint: string | undefined;
  /** Returns the announcement of the relay. */
  announced(): Promise<Announced>;
}

/** A kind of carrier, and how to open it. */
export interface CarrierKind {
  /** Returns true if the platform supports it. */
  isSupported(webSocket: WebSocketConstructor | undefined): boolean;
  open(request: CarrierRequest, events: CarrierEvents): Carrier;
}

/** Closes a carrier that failed, and calls its `onClose`. */
export function endCarrier(carrier: Carrier, close: CarrierClose): void {
  const { events } = carrier;
  carrier.close();
  events?.onClose(close);
}

/** Describes why a carrier closed: a close code of the relay, or {@link LOST}. */
export interface CarrierClose {
  code: number;
  reason: string;
}

/** Returns the close of a lost carrier, with an optional reason. */
export function lost(reason: unknown = ""): CarrierClose {
  return { code: LOST, reason: String(reason) };
}

/** Describes why a transport closed. */
export interface TransportEnd {
  code: "relay-closed" | "relay-unreachable" | "server-unreachable" | "no-transport" | "origin-refused" | "banned" | "incompatible-protocol";
  reason: string;
  /** The close code of the relay, if the relay closed the transport. */
  relayCode?: number;
}

/** The relay close codes that have their own error code (docs/relay-protocol.md). */
const CODES: Readonly<Record<number, TransportEnd["code"]>> = {
  4403: "origin-refused",
  4406: "incompatible-protocol",
  4502: "server-unreachable",
};

/** Converts the close of a carrier to an error code and a description. */
export function describeClose(url: URL, { code, reason }: CarrierClose, wasOpen: boolean): TransportEnd {
  // The relay sent every other code.
  if (!wasOpen && code === LOST) {
    const why = reason === "" ? "" : `: ${reason}`;
    return { code: "relay-unreachable", reason: `the relay at ${url.host} cannot be reached${why}`, relayCode: code };
  }
  const isLost = reason === "" || code === LOST;
  const description = isLost ? `connection to the relay lost (code ${code})` : `relay closed: ${reason} (code ${code})`;
  return { code: reason === BANNED ? "banned" : (CODES[code] ?? "relay-closed"), reason: description, relayCode: code };
}

/** Close codes of a relay that temporarily accepts no client. The relay keeps the flow of a client that reconnects. */
const LATER: readonly number[] = [1013, 4429];
/**
 * Close codes of a proxy that restarts, fails or lost the relay: going away, internal error, service restart, try again
 * later, bad gateway (the registry of RFC 6455 section 11.7). The relay keeps the flow.
 */
const BY_PROXIES: readonly number[] = [1001, 1011, 1012, 1013, 1014];
/** The close reasons with which the relay itself closes a flow with one of these codes (docs/relay-protocol.md). */
const BY_THE_RELAY: readonly string[] = ["relay is shutting down", "UDP socket to the game server failed"];

/** Returns true if another carrier may continue the flow after this close. */
export function isLoss({ code, reason }: CarrierClose): boolean {
  return code === LOST || code === UNRESPONSIVE || (BY_PROXIES.includes(code) && !BY_THE_RELAY.includes(reason));
}

/** Returns true if the flow may be resumed by a later attempt, after an attempt that ended with this close. */
export function canRetryResume(close: CarrierClose): boolean {
  return isLoss(close) || LATER.includes(close.code);
}
