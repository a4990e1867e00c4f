/** The UDP socket of a server. */

import type { Socket } from "node:dgram";
import { createSocket } from "node:dgram";

import { RakwireError } from "../errors.js";
import type { Sink } from "../loop.js";
import { withoutLookup } from "../node/literal.js";
import { ADDRESS, hostOf, portOf, writeAddress } from "./address.js";

/** The limit for bytes that the socket has taken and not sent: what comes behind them is dropped, as on any path. */
const MAX_BUFFERED_BYTES = 4 * 1024 * 1024;
const MAX_DATAGRAM = 65_536;

/** Datagrams from and to anybody, each behind the bytes of its address. */
export class ServerSocket implements Sink {
  readonly name = "udp";
  /** A server goes on for the others when one datagram cannot be sent. */
  readonly hasRoom = true;
  /** How many datagrams could not be sent. */
  unsent = 0;

  readonly #socket: Socket;
  readonly #isIpv6: boolean;
  readonly #received = new Uint8Array(ADDRESS + MAX_DATAGRAM);
  #buffered = 0;

  private constructor(socket: Socket, host: string) {
    this.#socket = socket;
    this.#isIpv6 = host.includes(":");
  }

  static async bind(host: string, port: number): Promise<ServerSocket> {
    const socket = createSocket({ type: host.includes(":") ? "udp6" : "udp4", lookup: withoutLookup });
    await new Promise<void>((resolve, reject) => {
      socket.once("error", (error) => {
        socket.close();
        reject(new RakwireError("address-unavailable", `${host}:${port} cannot be listened on: ${error.message}`, { cause: error }));
      });
      socket.bind({ address: host, port, exclusive: true }, resolve);
    });
    socket.removeAllListeners("error");
    return new ServerSocket(socket, host);
  }

  get address(): { host: string; port: number } {
    const { address, port } = this.#socket.address();
    return { host: address, port };
  }

  /** Hands over what arrives; the bytes are good until the callback returns. */
  listen(onDatagram: (datagram: Uint8Array) => void, onError: (error: Error) => void): void {
    this.#socket.on("error", onError);
    this.#socket.on("message", (datagram, { address, port }) => {
      writeAddress(this.#received, address, port);
      this.#received.set(datagram, ADDRESS);
      onDatagram(this.#received.subarray(0, ADDRESS + datagram.length));
    });
  }

  send(datagram: Uint8Array): void {
    if (this.#buffered > MAX_BUFFERED_BYTES) {
      this.unsent += 1;
      return;
    }
    this.#buffered += datagram.length;
    this.#socket.send(datagram, ADDRESS, datagram.length - ADDRESS, portOf(datagram), hostOf(datagram, this.#isIpv6), (error) => {
      this.#buffered -= datagram.length;
      this.unsent += error ? 1 : 0;
    });
  }

  /** Closes it once what it has taken was sent. */
  close(): void {
    if (this.#buffered > 0) {
      setImmediate(() => this.close());
    } else {
      this.#socket.close();
    }
  }
}
