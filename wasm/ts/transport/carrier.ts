/** What carries datagrams between a page and a relay. */

import type { TransportName, WebSocketConstructor } from "../types.js";
import type { Announced } from "./announced.js";

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
