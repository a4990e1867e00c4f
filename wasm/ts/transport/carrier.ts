/** A carrier of datagrams between a page and a relay: its interface, and its limits. */

import type { TransportName, WebSocketConstructor } from "../types.js";
import type { Announced } from "./announced.js";
import type { CarrierClose } from "./close.js";

/** The carriers to a relay, the preferred ones first: those without retransmission of their own before the stream. */
export const CARRIERS = ["webtransport", "webrtc", "websocket"] as const satisfies readonly TransportName[];
export type CarrierName = (typeof CARRIERS)[number];

/** The subprotocol of a relay that sends control messages. */
export const CONTROL_PROTOCOL = "rakwire.relay.1";
/** The one control message that a client sends: it asks for the message `flow`, and opens a flow that was deferred. */
export const FLOW_REQUEST = '{"type":"flow"}';
/** The most bytes that a carrier may have accepted and not sent: congestion control cannot hold them back any more. */
export const MAX_BUFFERED_BYTES = 64 * 1024;
/**
 * The longest datagram of carriers over UDP. Safari takes as much in WebTransport, and every relay has room for it in a packet of QUIC;
 * it fits one packet of SCTP, so that no datagram is lost for a part of it. RakNet's MTU is 28 bytes more, 1,052, and chosen once:
 * a WebSocket keeps to it as well where a carrier over UDP may have the flow later.
 */
export const LONGEST_DATAGRAM = 1_024;
/** The longest wait of a datagram in the browser: an older one is of no use, and is sent again if it must arrive. */
export const MAX_AGE_MS = 500;
/** The most datagrams that may wait in the browser in each direction. */
export const MAX_WAITING = 256;
/** The Connection Attempt Delay that RFC 8305 recommends. */
export const HEAD_START_MS = 250;
/** A WebSocket yields for the time that it took to open, divided by this, and at most for the longest. */
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
  /** The callbacks, which may be replaced once it is open; `undefined` after its end. */
  events: CarrierEvents | undefined;
  /** True if it accepts another datagram now. */
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

/** A way to open a carrier. */
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
