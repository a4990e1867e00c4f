/**
 * WebTransport to a relay, using only datagrams. A control message is a datagram with a prefix. Streams are avoided
 * because a lost packet would delay later datagrams.
 */

import { atPageEnd } from "../page.js";
import type { AnnouncedWebTransport, Carrier, CarrierClose, CarrierEvents, CarrierKind, CarrierRequest } from "./carrier.js";
import {
  CONTROL_PROTOCOL,
  endCarrier,
  FLOW_REQUEST,
  LONGEST_DATAGRAM,
  LOST,
  lost,
  MAX_AGE_MS,
  MAX_BUFFERED_BYTES,
  MAX_WAITING,
  NORMAL_CLOSURE,
} from "./carrier.js";
import { loopbackHosts } from "./local-network.js";

/** The prefix of control messages. */
const PREFIX = new TextEncoder().encode("rakwire:");
/**
 * The delay before a session is closed, in milliseconds. Browsers drop unsent datagrams on close, such as a disconnect
 * notification.
 */
const LAST_MS = 20;

/** Members of WebTransport that TypeScript does not declare yet, or that browsers name differently. */
interface Datagrams {
  readonly readable: ReadableStream<Uint8Array>;
  readonly writable?: WritableStream<Uint8Array>;
  createWritable?(): WritableStream<Uint8Array>;
  readonly maxDatagramSize: number;
  outgoingMaxAge: number | null;
  incomingMaxAge: number | null;
  outgoingHighWaterMark?: number;
  incomingHighWaterMark?: number;
  outgoingMaxBufferedDatagrams?: number;
  incomingMaxBufferedDatagrams?: number;
}

interface Session {
  readonly ready: Promise<unknown>;
  readonly closed: Promise<{ closeCode?: number; reason?: string } | undefined>;
  readonly datagrams: Datagrams;
  close(info?: { closeCode: number; reason: string }): void;
}

type SessionConstructor = new (url: string, options: object) => Session;

const constructor = (): SessionConstructor | undefined =>
  (globalThis as { WebTransport?: unknown }).WebTransport as SessionConstructor | undefined;

export const webTransport: CarrierKind = {
  isSupported: () => constructor() !== undefined,
  open: (request, events) => new WebTransportCarrier(request, events),
};

class WebTransportCarrier implements Carrier {
  #session: Session | undefined;
  #writer: WritableStreamDefaultWriter<Uint8Array> | undefined;
  events: CarrierEvents | undefined;
  bufferedAmount = 0;

  constructor(request: CarrierRequest, events: CarrierEvents) {
    this.events = events;
    this.#open(request).catch((error: unknown) => endCarrier(this, lost(error)));
  }

  get hasRoom(): boolean {
    return this.#writer !== undefined && this.bufferedAmount < MAX_BUFFERED_BYTES;
  }

  get longestDatagram(): number {
    return Math.min(this.#session?.datagrams.maxDatagramSize ?? LONGEST_DATAGRAM, LONGEST_DATAGRAM);
  }

  send(datagram: Uint8Array): void {
    const { length } = datagram;
    const settle = (): void => {
      this.bufferedAmount -= length;
    };
    this.bufferedAmount += length;
    // The datagram is copied, because the caller may overwrite it before the browser reads it.
    this.#writer?.write(datagram.slice()).then(settle, settle);
  }

  requestFlow(): void {
    this.send(Uint8Array.of(...PREFIX, ...new TextEncoder().encode(FLOW_REQUEST)));
  }

  close(isLast = false): void {
    this.events = undefined;
    this.#writer = undefined;
    const end = (): void => {
      try {
        this.#session?.close({ closeCode: NORMAL_CLOSURE, reason: "" });
      } catch {
        // The session never opened or has closed.
      }
    };
    // Timers no longer fire once the page is left.
    if (isLast) {
      atPageEnd.push(end);
    } else {
      setTimeout(end, LAST_MS);
    }
  }

  async #open({ url, token, hasControl, announced }: CarrierRequest): Promise<void> {
    const { webtransport: offer, refused } = await announced();
    const WebTransport = constructor();
    if (refused !== undefined) {
      endCarrier(this, refused);
    }
    if (this.events === undefined) {
      return;
    }
    if (offer === undefined || WebTransport === undefined) {
      throw new Error("the relay has no WebTransport");
    }
    const session = await this.#connect(sessionUrl(url, offer, token, hasControl), offer, WebTransport);
    if (session === undefined || this.events === undefined) {
      this.close();
      return;
    }
    const { datagrams } = session;
    limit(datagrams);
    this.#writer = (datagrams.createWritable?.() ?? (datagrams.writable as WritableStream<Uint8Array>)).getWriter();
    // A failure of the writer closes the session too.
    this.#writer.closed.catch(() => undefined);
    this.events.onOpen();
    // The session itself reports why it closed.
    await this.#receive(datagrams.readable.getReader()).catch(() => undefined);
  }

  /**
   * Opens a session at the first host that accepts one; otherwise closes the carrier. Chromium tries only one address
   * of a name. A certificate accepted by its hash is valid for every host.
   */
  async #connect(url: URL, offer: AnnouncedWebTransport, WebTransport: SessionConstructor): Promise<Session | undefined> {
    const others = offer.certificate_hashes.length > 0 ? loopbackHosts(url.hostname) : [];
    let close: CarrierClose | undefined;
    for (const hostname of [url.hostname, ...others]) {
      url.hostname = hostname;
      const session = new WebTransport(url.href, options(offer));
      this.#session = session;
      const closed = session.closed.then((end) => ({ code: end?.closeCode || NORMAL_CLOSURE, reason: end?.reason ?? "" }), lost);
      close = await Promise.race([session.ready.then(() => undefined, lost), closed]);
      if (close === undefined) {
        void closed.then((end) => endCarrier(this, end));
        return session;
      }
      if (this.events === undefined || close.code !== LOST) {
        break;
      }
    }
    endCarrier(this, close as CarrierClose);
    return undefined;
  }

  async #receive(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
    for (;;) {
      const { value, done } = await reader.read();
      if (done || this.events === undefined) {
        return;
      }
      if (PREFIX.every((byte, index) => byte === value[index])) {
        this.events.onControl(new TextDecoder().decode(value.subarray(PREFIX.length)));
      } else {
        this.events.onDatagram(value);
      }
    }
  }

}

function sessionUrl(relay: URL, { port, path }: AnnouncedWebTransport, token: string | undefined, hasControl: boolean): URL {
  const url = new URL(path, relay);
  url.protocol = "https:";
  url.port = String(port);
  url.search = relay.search;
  if (hasControl) {
    url.searchParams.set("protocol", CONTROL_PROTOCOL);
  }
  if (token !== undefined) {
    url.searchParams.set("token", token);
  }
  return url;
}

function options({ certificate_hashes: hashes }: AnnouncedWebTransport): object {
  const hash = (text: string): object => ({
    algorithm: "sha-256",
    value: Uint8Array.from(atob(text), (character) => character.charCodeAt(0)),
  });
  return {
    congestionControl: "low-latency",
    requireUnreliable: true,
    ...(hashes.length > 0 && { serverCertificateHashes: hashes.map(hash) }),
  };
}

/** Limits the datagrams queued in the browser. The standard has renamed two of the limits. */
function limit(datagrams: Datagrams): void {
  for (const way of ["outgoing", "incoming"] as const) {
    datagrams[`${way}MaxAge` as const] = MAX_AGE_MS;
    const limit = `${way}MaxBufferedDatagrams` as const;
    datagrams[datagrams[limit] === undefined ? (`${way}HighWaterMark` as const) : limit] = MAX_WAITING;
  }
}
