/** UDP in Node: datagrams straight to a server. */

import type { Socket } from "node:dgram";
import { createSocket } from "node:dgram";
import { lookup } from "node:dns";

import type { Transport, TransportEvents, TransportSettings } from "../transport/transport.js";

/** The limit for bytes that the socket has taken and not sent. */
const MAX_BUFFERED_BYTES = 64 * 1024;

/** Opens a socket that is connected to the server at `udp://HOST:PORT`. */
export function openUdp({ url }: TransportSettings, events: TransportEvents): Transport {
  return new UdpTransport(new URL(url), events);
}

class UdpTransport implements Transport {
  readonly name = "udp";
  readonly dropped = 0;
  readonly #host: string;
  /** None until the address of the server is known. */
  #socket: Socket | undefined;
  #events: TransportEvents | undefined;
  #isOpen = false;
  /** Whether it shall be closed, and whether it is. */
  #isClosing = false;
  #isClosed = false;
  #buffered = 0;

  constructor({ hostname, port, host }: URL, events: TransportEvents) {
    this.#host = host;
    this.#events = events;
    // A name may have addresses of one family alone. Of both, the one of IPv4 is taken, whatever the resolver prefers.
    lookup(hostname.replace(/^\[(.*)\]$/, "$1"), { verbatim: false }, (error, address, family) => {
      if (error !== null) {
        this.#end(error);
      } else if (!this.#isClosing) {
        this.#connect(createSocket(family === 6 ? "udp6" : "udp4"), Number(port), address);
      }
    });
  }

  #connect(socket: Socket, port: number, address: string): void {
    this.#socket = socket;
    socket.on("message", (datagram) => this.#events?.onDatagram(datagram));
    socket.on("connect", () => {
      // The attempt may have been given up in the meantime.
      if (!this.#isClosing) {
        this.#isOpen = true;
        this.#events?.onOpen();
      }
    });
    // A server that is not there yet answers by ICMP; it is asked again until the attempt ends.
    socket.on("error", (error) => {
      if (!this.#isOpen) {
        this.#end(error);
      }
    });
    socket.connect(port, address);
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
    this.#buffered += datagram.length;
    this.#socket.send(datagram, () => {
      this.#buffered -= datagram.length;
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
