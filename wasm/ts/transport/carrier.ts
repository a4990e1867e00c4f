/** A carrier of datagrams between a page and a relay: its interface, and its limits. */

import type { TransportName, WebSocketConstructor } from "../types.js";
import type { Announced } from "./announced.js";
import type { CarrierClose } from "./close.js";

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
  isThere(webSocket: WebSocketConstructor | undefined): boolean;
  open(request: CarrierRequest, events: CarrierEvents): Carrier;
}

/** Closes a carrier that has ended by itself, and calls back. */
export function endCarrier(carrier: Carrier, close: CarrierClose): void {
  const { events } = carrier;
  carrier.close();
  events?.onClose(close);
}
