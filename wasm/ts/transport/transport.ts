/** What carries datagrams to one server. */

import { RakwireError } from "../errors.js";
import type { RelayDrops, TransportName, WebSocketConstructor } from "../types.js";
import type { CarrierName } from "./carrier.js";
import { openRelay } from "./relay.js";

/** The callbacks of a transport. */
export interface TransportEvents {
  onOpen(): void;
  /** Whether a stream carries the datagrams from now on. It is told before {@link onOpen}, and when it changes. */
  onCarrier?(isStream: boolean): void;
  onDatagram(datagram: Uint8Array): void;
  /** Datagrams are lost until the transport is there again. */
  onInterrupted(): void;
  onResumed(): void;
  /** The relay has dropped datagrams of this connection. */
  onRelayDrops(drops: RelayDrops): void;
  onClose(end: TransportEnd): void;
}

/** Why a transport ended. */
export interface TransportEnd {
  code: "relay-closed" | "relay-unreachable" | "server-unreachable" | "no-transport";
  reason: string;
  /** The close code of the relay, if there is one. */
  relayCode?: number;
}

/** An open transport, or one that opens. */
export interface Transport {
  /** What it is now; `undefined` while there is nothing that carries datagrams. */
  readonly name: TransportName | undefined;
  /** How many datagrams were too long for it. */
  readonly dropped: number;
  /** Whether it takes another datagram now. */
  readonly hasRoom: boolean;
  /** Bytes that it has taken and not sent. */
  readonly bufferedAmount: number;
  /** Whether {@link send} keeps nothing of the bytes that it is given. Without it, it gets a copy that is its own. */
  readonly sendsAtOnce?: boolean;
  send(datagram: Uint8Array): void;
  /** Closes it after what it has taken, without further callbacks. */
  close(): void;
}

/** Where a transport leads, and by what means. Without `webSocket` it can be passed to another thread. */
export interface TransportSettings {
  /** The URL of a server, or of a relay with its target. */
  url: string;
  token?: string;
  /** The fingerprint of the relay's certificate for data channels. */
  fingerprint?: string;
  /** What may carry datagrams to a relay, the preferred first. */
  carriers: readonly CarrierName[];
  /** Whether another carrier takes over when one is lost. */
  resume: boolean;
  webSocket?: WebSocketConstructor;
}

type Open = (settings: TransportSettings, events: TransportEvents) => Transport;

/** By the scheme of their URLs. */
const openers = new Map<string, Open>([
  ["ws:", openRelay],
  ["wss:", openRelay],
]);

/** Adds a transport of a platform. */
export function registerTransport(scheme: string, open: Open): void {
  openers.set(scheme, open);
}

/** Starts to open the transport that its URL names. */
export function openTransport(settings: TransportSettings, events: TransportEvents): Transport {
  const { protocol } = new URL(settings.url);
  const open = openers.get(protocol);
  if (open === undefined) {
    throw new RakwireError("bad-option", `${protocol}// works in Node alone; a page needs the URL of a relay`);
  }
  return open(settings, events);
}

export function hasTransport(scheme: string): boolean {
  return openers.has(scheme);
}
