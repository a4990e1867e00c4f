/** The UDP socket of a server, and conversions of addresses for Rust. */

import type { Socket, SocketOptions } from "node:dgram";
import { createSocket } from "node:dgram";

import { RakwireError } from "../errors.js";
import type { Sink } from "../loop.js";
import { readAddresses } from "../raknet-wire.js";

/**
 * The maximum number of bytes in the send buffer of the socket. Further datagrams are dropped, like on a congested
 * path.
 */
const MAX_BUFFERED_BYTES = 4 * 1024 * 1024;
const MAX_DATAGRAM = 65_536;

/** Sends and receives datagrams. In memory, each datagram is preceded by the bytes of its address. */
export class ServerSocket implements Sink {
  readonly name = "udp";
  /** Always true, because a datagram that cannot be sent must not block datagrams to other clients. */
  readonly hasRoom = true;
  /** The number of datagrams that could not be sent. */
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
        reject(new RakwireError("address-unavailable", `cannot listen on ${host}:${port}: ${error.message}`, { cause: error }));
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

  /** Starts receiving. The bytes of a datagram are valid until the callback returns. */
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

  /** Closes the socket after sending the buffered datagrams. */
  close(): void {
    if (this.#buffered > 0) {
      setImmediate(() => this.close());
    } else {
      this.#socket.close();
    }
  }
}

/**
 * The length of an address in bytes, as in Rust: 16 bytes of IPv6 or IPv4-mapped address, 2 bytes of port, and 4 bytes
 * of interface number.
 */
export const ADDRESS = 22;

/** The offset of the port in an address, in bytes. */
const PORT = 16;
/** The offset of the interface number in a link-local address, in bytes. */
const INTERFACE = 18;

/** The prefix of an IPv4-mapped IPv6 address (RFC 4291 section 2.5.5.2). */
const MAPPED = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];

/** The names of local interfaces. Sockets use names, and Rust uses positions in this list, from 1. */
const interfaces: string[] = [];

function interfaceNumber(name: string | undefined): number {
  return name === undefined ? 0 : interfaces.indexOf(name) + 1 || interfaces.push(name);
}

/** Returns the interface of an address after a percent sign; empty if it has no interface. */
function zoneOf(bytes: Uint8Array): string {
  const name = interfaces[new DataView(bytes.buffer, bytes.byteOffset).getUint32(INTERFACE) - 1];
  return name === undefined ? "" : `%${name}`;
}

/** Writes the address of a sender. */
export function writeAddress(bytes: Uint8Array, address: string, port: number): void {
  const [host = "", name] = address.split("%");
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  if (host.includes(":")) {
    groupsOf(host).forEach((group, index) => view.setUint16(2 * index, group));
  } else {
    bytes.set(MAPPED);
    bytes.set(host.split(".").map(Number), MAPPED.length);
  }
  view.setUint16(PORT, port);
  view.setUint32(INTERFACE, interfaceNumber(name));
}

/** Returns the eight groups of an IPv6 address, with `::` expanded to zeros. */
function groupsOf(host: string): number[] {
  const [head = "", tail] = host.replace(/\d+\.\d+\.\d+\.\d+$/, dotted).split("::");
  const read = (text: string): number[] => (text === "" ? [] : text.split(":").map((group) => Number.parseInt(group, 16)));
  const [first, last] = [read(head), read(tail ?? "")];
  return [...first, ...Array.from({ length: 8 - first.length - last.length }, () => 0), ...last];
}

/** Converts dotted IPv4 to the last two groups of an IPv6 address. */
function dotted(text: string): string {
  const [a = 0, b = 0, c = 0, d = 0] = text.split(".").map(Number);
  return `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`;
}

/** Returns the host of an address, for a socket of this address family. */
export function hostOf(bytes: Uint8Array, isIpv6: boolean): string {
  if (MAPPED.every((byte, index) => bytes[index] === byte)) {
    const host = bytes.slice(MAPPED.length, 16).join(".");
    return isIpv6 ? `::ffff:${host}` : host;
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  return Array.from({ length: 8 }, (_, index) => view.getUint16(2 * index).toString(16)).join(":") + zoneOf(bytes);
}

/** The port of an address. */
export function portOf(bytes: Uint8Array): number {
  return ((bytes[PORT] ?? 0) << 8) | (bytes[PORT + 1] ?? 0);
}

/** Formats an address, as `192.0.2.7:19132` or `[fe80::7%eth0]:19132`. */
export function textOf(bytes: Uint8Array): string {
  const [text = ""] = readAddresses(bytes.subarray(0, INTERFACE));
  return text.replace("]", () => `${zoneOf(bytes)}]`);
}

/**
 * Replaces the DNS resolver, because all hosts are addresses. Node's resolver mistakes an address for a host name if
 * its interface contains an underscore, and drops the interface.
 */
export const withoutLookup: NonNullable<SocketOptions["lookup"]> = (address, _, callback) =>
  callback(null, address, address.includes(":") ? 6 : 4);
