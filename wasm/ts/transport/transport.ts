/** A transport of datagrams to one server. Its URL names a relay and a target, or the server itself. */

import { RakwireError } from "../errors.js";
import type { TransportName, WebSocketConstructor } from "../types.js";
import type { CarrierName, TransportEnd } from "./carrier.js";
import type { RelayNotice } from "./flow.js";

/** The callbacks of a transport. */
export interface TransportEvents {
  /** Called once, when the first datagrams can be sent. */
  onTransportOpen(): void;
  /** Reports whether the carrier is a stream: before {@link onTransportOpen}, and whenever it changes. */
  onCarrier?(isStream: boolean): void;
  onDatagram(datagram: Uint8Array): void;
  /** Called when the carrier is lost. Datagrams are lost until `onResumed`. */
  onInterrupted(): void;
  onResumed(): void;
  onRelayNotice(notice: RelayNotice): void;
  onClose(end: TransportEnd): void;
}

/** A transport that is open or opening. */
export interface Transport {
  /** The name of the current carrier; `undefined` while there is none. */
  readonly name: TransportName | undefined;
  /** The number of datagrams dropped because they were too long. */
  readonly dropped: number;
  /** True if the transport accepts another datagram now. */
  readonly hasRoom: boolean;
  /** The number of bytes accepted and not yet sent. */
  readonly bufferedAmount: number;
  /** True if {@link send} does not keep a reference to its argument. Otherwise pass it a copy. */
  readonly sendsAtOnce?: boolean;
  send(datagram: Uint8Array): void;
  /**
   * Closes the transport without further callbacks, after sending all accepted datagrams. If `isLast`, sends only the
   * datagrams that can be sent immediately.
   */
  close(isLast?: boolean): void;
}

/** The parameters of a transport. Without `webSocket`, they can be posted to another thread. */
export interface TransportSettings {
  /** The URL of a server, or of a relay with its target. */
  url: string;
  token?: string;
  /** The fingerprint of the relay's certificate for data channels. */
  fingerprint?: string;
  /** The carriers to a relay, in order of preference. */
  carriers: readonly CarrierName[];
  /** True if another carrier continues the flow when its carrier is lost. */
  resume: boolean;
  webSocket?: WebSocketConstructor;
}

/** Starts opening a transport. */
export type OpenTransport = (settings: TransportSettings, events: TransportEvents) => Transport;

/**
 * Matches an address without a scheme. A page would take it for a path, and `new URL` would take its host for a scheme.
 */
const WITHOUT_SCHEME = /^([\w.-]+|\[[\da-f:.]+\]):\d+(\/|$)/i;

/**
 * Builds the URL of a transport. The URL of a relay may begin with `http`, or in pages be a relative path. A `udp:` URL
 * names a server.
 */
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
  // Makes the relay close the connection when ICMP reports that the server's port is closed.
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

/** Converts an address that the platform's direct transport accepts but {@link URL} does not. */
let readDirectUrl = (url: string | URL): string | URL => url;

/** Registers the platform's direct transport, which reaches servers without a relay. */
export function setDirectTransport(open: OpenTransport, readUrl: typeof readDirectUrl): void {
  openDirect = open;
  readDirectUrl = readUrl;
}

/** Returns the direct transport for the URL of a server; `undefined` for the URL of a relay. */
export function directTransport({ protocol }: URL): OpenTransport | undefined {
  if (protocol !== "udp:") {
    return undefined;
  }
  if (openDirect === undefined) {
    throw new RakwireError("bad-option", `${protocol}// only works in Node; a page needs the URL of a relay`);
  }
  return openDirect;
}
