/** UDP in Node: datagrams straight to a server. */

import type { Socket } from "node:dgram";
import { createSocket } from "node:dgram";
import { isIPv6 } from "node:net";

import type { Transport, TransportEvents, TransportSettings } from "../transport/transport.js";

/** The limit for bytes that the socket has taken and not sent. */
const MAX_BUFFERED_BYTES = 64 * 1024;

/** Opens a socket that is connected to the server at `udp://HOST:PORT`. */
export function openUdp({ url }: TransportSettings, events: TransportEvents): Transport {
  return new UdpTransport(new URL(url), events);
}

class UdpTransport implements Transport {
  readonly #socket: Socket;
  #events: TransportEvents | undefined;
  #isOpen = false;
  /** Whether it shall be closed, and whether it is. */
  #isClosing = false;
  #isClosed = false;
  #buffered = 0;

  constructor({ hostname, port, host }: URL, events: TransportEvents) {
    this.#events = events;
    const address = hostname.replace(/^\[(.*)\]$/, "$1");
    this.#socket = createSocket(isIPv6(address) ? "udp6" : "udp4");
    this.#socket.on("message", (datagram) => this.#events?.onDatagram(datagram));
    this.#socket.on("connect", () => {
      this.#isOpen = true;
      this.#events?.onOpen();
    });
    // A server that is not there yet answers by ICMP; it is asked again until the attempt ends.
    this.#socket.on("error", (error: NodeJS.ErrnoException) => {
      if (!this.#isOpen) {
        this.#end(`${host} cannot be reached: ${error.message}`);
      }
    });
    this.#socket.connect(Number(port), address);
  }

  get hasRoom(): boolean {
    return this.#isOpen && this.#buffered < MAX_BUFFERED_BYTES;
  }

  get bufferedAmount(): number {
    return this.#buffered;
  }

  send(datagram: Uint8Array): void {
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
      this.#socket.close();
    }
  }

  #end(reason: string): void {
    const events = this.#events;
    this.close();
    events?.onClose({ code: "server-unreachable", reason });
  }
}
