/** A transport of datagrams to one server, and its URL, which names a relay and its target, or the server itself. */

import { RakwireError } from "../errors.js";
import type { TransportName, WebSocketConstructor } from "../types.js";
import type { CarrierName, TransportEnd } from "./carrier.js";
import type { RelayNotice } from "./flow.js";

/** The callbacks of a transport. */
export interface TransportEvents {
  /** Datagrams can pass for the first time. */
  onTransportOpen(): void;
  /** Reports the kind of carrier, a stream or not: before {@link onTransportOpen}, and when it changes. */
  onCarrier?(isStream: boolean): void;
  onDatagram(datagram: Uint8Array): void;
  /** Datagrams are lost until the transport resumes. */
  onInterrupted(): void;
  onResumed(): void;
  onRelayNotice(notice: RelayNotice): void;
  onClose(end: TransportEnd): void;
}

/** An open transport, or one that opens. */
export interface Transport {
  /** The name of the current carrier; `undefined` while there is none. */
  readonly name: TransportName | undefined;
  /** The number of datagrams that were too long. */
  readonly dropped: number;
  /** True if it accepts another datagram now. */
  readonly hasRoom: boolean;
  /** The number of bytes accepted and not sent. */
  readonly bufferedAmount: number;
  /** True if {@link send} does not keep a reference to its argument. Otherwise it gets a copy. */
  readonly sendsAtOnce?: boolean;
  send(datagram: Uint8Array): void;
  /**
   * Closes the transport after sending accepted datagrams, without further callbacks; if `isLast`, after those that it
   * can send immediately.
   */
  close(isLast?: boolean): void;
}

/** The settings of a transport. Without `webSocket` they can be posted to another thread. */
export interface TransportSettings {
  /** The URL of a server, or of a relay with its target. */
  url: string;
  token?: string;
  /** The fingerprint of the relay's certificate for data channels. */
  fingerprint?: string;
  /** The carriers to a relay, in order of preference. */
  carriers: readonly CarrierName[];
  /** True if another carrier continues the flow when one is lost. */
  resume: boolean;
  webSocket?: WebSocketConstructor;
}

/** Starts to open a transport. */
export type OpenTransport = (settings: TransportSettings, events: TransportEvents) => Transport;

/** An address without a scheme. A page would take it for a path, and `new URL` would take its host for the scheme. */
const WITHOUT_SCHEME = /^([\w.-]+|\[[\da-f:.]+\]):\d+(\/|$)/i;

/** Builds the URL of a transport. A page may use http or a relative path for the relay; `udp:` is a server itself. */
export function targetUrl(url: string | URL, target: string | undefined): URL {
  if (WITHOUT_SCHEME.test(String(url))) {
    throw new RakwireError("bad-option", `the address of the relay has no scheme: write ws://${url} or wss://`);
  }
  let address: URL;
  try {
    address = new URL(readDirectUrl(url), globalThis.location?.href);
  } catch (cause) {
    throw new RakwireError("bad-option", `the address of the relay is not a URL: ${url}`, { cause });
  }
  if (address.protocol === "udp:") {
    return withPort(address);
  }
  address.protocol = address.protocol.replace(/^http/, "ws");
  if (address.protocol !== "ws:" && address.protocol !== "wss:") {
    throw new RakwireError("bad-option", `the address of the relay must begin with ws:// or wss://: ${url}`);
  }
  if (address.username !== "" || address.password !== "") {
    throw new RakwireError("bad-option", "browsers do not send the password of a URL; use the option token");
  }
  if (typeof target !== "string" || target === "") {
    throw new RakwireError("bad-option", "target must be the name of a game server at the relay");
  }
  address.hash = "";
  address.searchParams.set("target", target);
  // Lets the relay close the connection when ICMP reports that no server uses the port.
  address.searchParams.set("unreachable", "close");
  return address;
}

/** The characters allowed in a WebSocket subprotocol. */
const TOKEN = /^[\w.~-]+$/;

export function checkToken(token: string | undefined): void {
  if (token !== undefined && !TOKEN.test(token)) {
    throw new RakwireError("bad-option", "token may only have letters, digits and -._~");
  }
}

function withPort(address: URL): URL {
  if (address.port === "" || address.hostname === "") {
    throw new RakwireError("bad-option", `the address of a server must be udp://HOST:PORT, not ${address.href}`);
  }
  return address;
}

let openDirect: OpenTransport | undefined;

/** Converts an address that only the platform's own transport accepts, and not {@link URL}. */
let readDirectUrl = (url: string | URL): string | URL => url;

/** Registers the platform's transport to servers without a relay. */
export function setDirectTransport(open: OpenTransport, readUrl: typeof readDirectUrl): void {
  openDirect = open;
  readDirectUrl = readUrl;
}

/** Returns the function that opens a server without a relay; `undefined` for the URL of a relay. */
export function directTransport({ protocol }: URL): OpenTransport | undefined {
  if (protocol !== "udp:") {
    return undefined;
  }
  if (openDirect === undefined) {
    throw new RakwireError("bad-option", `${protocol}// only works in Node; a page needs the URL of a relay`);
  }
  return openDirect;
}
