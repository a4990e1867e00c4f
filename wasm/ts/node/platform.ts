/** The additions for Node: UDP directly to a server, and reading files. */

import type { Socket } from "node:dgram";
import { createSocket } from "node:dgram";
import type { LookupAddress } from "node:dns";
import { lookup } from "node:dns";
import { readFile } from "node:fs/promises";

import { withoutLookup } from "../server/socket.js";
import type { Transport, TransportEvents, TransportSettings } from "../transport/transport.js";
import { setDirectTransport } from "../transport/transport.js";
import { setFileReader } from "../wasm.js";

/** The maximum number of bytes in the send buffer of the socket. */
const MAX_BUFFERED_BYTES = 64 * 1024;

/** Matches an IPv6 address with an interface name, as in RFC 4007 or, with `%25`, RFC 6874. */
const WITH_INTERFACE = /^(udp:\/\/\[[\da-f:.]+)%(?:25)?([^\]/?#]+)\](:\d+)\/?$/i;

/** Moves the interface name to the query, because {@link URL} does not allow it in the host. */
export function readUdpUrl(url: string | URL): string {
  return String(url).replace(WITH_INTERFACE, (_, address, name, port) => `${address}]${port}?interface=${encodeURIComponent(name)}`);
}

/** Opens a socket connected to the server at `udp://HOST:PORT`. */
function openUdp({ url }: TransportSettings, events: TransportEvents): Transport {
  return new UdpTransport(new URL(url), events);
}

class UdpTransport implements Transport {
  readonly name = "udp";
  readonly dropped = 0;
  readonly #host: string;
  readonly #port: number;
  /** The addresses of the host that have not been tried yet. */
  #addresses: LookupAddress[] = [];
  /** The socket; `undefined` until the host is resolved. */
  #socket: Socket | undefined;
  #events: TransportEvents | undefined;
  #isOpen = false;
  /** True once anything was received. */
  #hasReceived = false;
  /** The last datagram sent before anything was received. It is repeated to the next address. */
  #unanswered: Uint8Array | undefined;
  /** True once `close` was called. Datagrams that are still buffered are sent first. */
  #isClosing = false;
  #isClosed = false;
  #buffered = 0;

  constructor({ hostname, port, searchParams }: URL, events: TransportEvents) {
    const name = searchParams.get("interface");
    const host = hostname.replace(/\]?$/, (end) => (name === null ? end : `%${name}${end}`));
    this.#host = `${host}:${port}`;
    this.#port = Number(port);
    this.#events = events;
    const address = host.replace(/^\[(.*)\]$/, "$1");
    const found = (error: Error | null, addresses?: LookupAddress[]): void => {
      this.#addresses = addresses ?? [];
      this.#connectNext(error ?? new Error("its name has no address"));
    };
    if (name === null) {
      // All addresses are tried, because the server may listen on only one family. IPv4 comes first, regardless of the
      // resolver.
      lookup(address, { verbatim: false, all: true }, found);
    } else {
      queueMicrotask(() => found(null, [{ address, family: 6 }]));
    }
  }

  /** Tries the next address. If none remains, the attempt fails with the error. */
  #connectNext(error: Error): void {
    const next = this.#addresses.shift();
    if (next === undefined) {
      this.#end(error);
    } else if (!this.#isClosing) {
      this.#socket?.close();
      const type = next.family === 6 ? "udp6" : "udp4";
      this.#connect(createSocket({ type, lookup: withoutLookup }), next.address);
    }
  }

  #connect(socket: Socket, address: string): void {
    this.#socket = socket;
    socket.on("message", (datagram) => {
      this.#hasReceived = true;
      this.#unanswered = undefined;
      this.#events?.onDatagram(datagram);
    });
    socket.on("connect", () => {
      // The attempt may have been cancelled in the meantime.
      if (this.#isClosing) {
        return;
      }
      if (this.#unanswered !== undefined) {
        this.send(this.#unanswered);
      }
      if (!this.#isOpen) {
        this.#isOpen = true;
        this.#events?.onTransportOpen();
      }
    });
    socket.on("error", (error) => this.#onError(socket, error));
    socket.connect(this.#port, address);
  }

  /**
   * Handles an ICMP error, which means that no socket is bound to the port. A server that was reachable before may be
   * restarting, so datagrams are still sent until the connection times out.
   */
  #onError(socket: Socket, error: Error): void {
    if (socket === this.#socket && !this.#hasReceived && !this.#isClosing) {
      this.#connectNext(error);
    }
  }

  get hasRoom(): boolean {
    return this.#isOpen && this.#buffered < MAX_BUFFERED_BYTES;
  }

  get bufferedAmount(): number {
    return this.#buffered;
  }

  send(datagram: Uint8Array): void {
    if (this.#socket === undefined) {
      return;
    }
    const socket = this.#socket;
    const { length } = datagram;
    if (!this.#hasReceived) {
      this.#unanswered = datagram;
    }
    this.#buffered += length;
    socket.send(datagram, (error) => {
      this.#buffered -= length;
      if (error !== null) {
        this.#onError(socket, error);
      }
      this.#closeWhenSent();
    });
  }

  close(): void {
    this.#events = undefined;
    this.#isOpen = false;
    this.#isClosing = true;
    this.#closeWhenSent();
  }

  #closeWhenSent(): void {
    if (this.#isClosing && !this.#isClosed && this.#buffered === 0) {
      this.#isClosed = true;
      this.#socket?.close();
    }
  }

  #end(error: Error): void {
    const events = this.#events;
    this.close();
    events?.onClose({ code: "server-unreachable", reason: `${this.#host} cannot be reached: ${error.message}` });
  }
}

setDirectTransport(openUdp, readUdpUrl);
setFileReader(async (url) => new Uint8Array(await readFile(url)));
