/** A transport of datagrams to one server, and its URL: that of a target of a relay, or of the server itself. */

import { RakwireError } from "../errors.js";
import type { TransportName, WebSocketConstructor } from "../types.js";
import type { CarrierName } from "./carrier.js";
import type { TransportEnd } from "./close.js";
import type { RelayNotice } from "./flow.js";

/** The callbacks of a transport. */
export interface TransportEvents {
  /** It carries datagrams for the first time. */
  onTransportOpen(): void;
  /** The kind of carrier from now on: a stream or not. Called before {@link onTransportOpen}, and when it changes. */
  onCarrier?(isStream: boolean): void;
  onDatagram(datagram: Uint8Array): void;
  /** Datagrams are lost until the transport is there again. */
  onInterrupted(): void;
  onResumed(): void;
  onRelayNotice(notice: RelayNotice): void;
  onClose(end: TransportEnd): void;
}

/** An open transport, or one that opens. */
export interface Transport {
  /** Its name now; `undefined` while nothing carries datagrams. */
  readonly name: TransportName | undefined;
  /** The number of datagrams that were too long for it. */
  readonly dropped: number;
  /** True if it accepts another datagram now. */
  readonly hasRoom: boolean;
  /** Bytes that it has taken and not sent. */
  readonly bufferedAmount: number;
  /** Whether {@link send} keeps nothing of the bytes that it is given. Without it, it gets a copy that is its own. */
  readonly sendsAtOnce?: boolean;
  send(datagram: Uint8Array): void;
  /** Closes it after what it has taken, without further callbacks; where nothing comes later, after what it can send now. */
  close(isLast?: boolean): void;
}

/** The settings of a transport. Without `webSocket` they can be passed to another thread. */
export interface TransportSettings {
  /** The URL of a server, or of a relay with its target. */
  url: string;
  token?: string;
  /** The fingerprint of the relay's certificate for data channels. */
  fingerprint?: string;
  /** The carriers to a relay, the preferred ones first. */
  carriers: readonly CarrierName[];
  /** True if another carrier continues the flow when one is lost. */
  resume: boolean;
  webSocket?: WebSocketConstructor;
}

/** Starts to open a transport. */
export type OpenTransport = (settings: TransportSettings, events: TransportEvents) => Transport;

/** An address without a scheme, which a page would take for a path, and of which `new URL` takes the host for the scheme. */
const WITHOUT_SCHEME = /^([\w.-]+|\[[\da-f:.]+\]):\d+(\/|$)/i;

/** The URL for a transport. Pages may use http or a relative path for the relay; `udp:` leads to a server itself. */
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
    throw new RakwireError("bad-option", "browsers send no password of a URL; give the option token");
  }
  if (typeof target !== "string" || target === "") {
    throw new RakwireError("bad-option", "a target is required: the name of the game server at the relay");
  }
  address.hash = "";
  address.searchParams.set("target", target);
  // The relay knows at once that nothing listens where the server should be, by ICMP.
  address.searchParams.set("unreachable", "close");
  return address;
}

/** The characters of a subprotocol of a WebSocket. */
const TOKEN = /^[\w.~-]+$/;

export function checkToken(token: string | undefined): void {
  if (token !== undefined && !TOKEN.test(token)) {
    throw new RakwireError("bad-option", "a token has only letters, digits and -._~");
  }
}

function withPort(address: URL): URL {
  if (address.port === "" || address.hostname === "") {
    throw new RakwireError("bad-option", `the address of a server is udp://HOST:PORT, not ${address.href}`);
  }
  return address;
}

let openDirect: OpenTransport | undefined;

/** Makes a URL of an address that a platform's own transport takes and {@link URL} does not. */
let readDirectUrl = (url: string | URL): string | URL => url;

/** Adds the transport to servers themselves, which a platform may have. */
export function setDirectTransport(open: OpenTransport, readUrl: typeof readDirectUrl): void {
  openDirect = open;
  readDirectUrl = readUrl;
}

/** The function that opens the server of a URL; `undefined` for the URL of a relay. */
export function directTransport({ protocol }: URL): OpenTransport | undefined {
  if (protocol !== "udp:") {
    return undefined;
  }
  if (openDirect === undefined) {
    throw new RakwireError("bad-option", `${protocol}// works in Node alone; a page needs the URL of a relay`);
  }
  return openDirect;
}
