/** Addresses as Rust has them: 16 bytes of IPv6, within which IPv4 stands, the port, and the number of an interface. */

import { readAddresses } from "../addresses.js";

/** The bytes of an address. */
export const ADDRESS = 22;

/** Where the port is, and the interface of a link-local address. */
const PORT = 16;
const INTERFACE = 18;

/** What stands before an IPv4 address inside IPv6 (RFC 4291 section 2.5.5.2). */
const MAPPED = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];

/** Names of this machine's interfaces. Sockets have names, and Rust has numbers: the places here, from 1 on. */
const interfaces: string[] = [];

function interfaceNumber(name: string | undefined): number {
  return name === undefined ? 0 : interfaces.indexOf(name) + 1 || interfaces.push(name);
}

/** The interface of an address behind a percent sign, or nothing. */
function zoneOf(bytes: Uint8Array): string {
  const name = interfaces[new DataView(bytes.buffer, bytes.byteOffset).getUint32(INTERFACE) - 1];
  return name === undefined ? "" : `%${name}`;
}

/** Writes what a socket tells of a sender. */
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

/** The eight groups of an IPv6 address, of which `::` stands for those that are 0. */
function groupsOf(host: string): number[] {
  const [head = "", tail] = host.replace(/\d+\.\d+\.\d+\.\d+$/, dotted).split("::");
  const read = (text: string): number[] => (text === "" ? [] : text.split(":").map((group) => Number.parseInt(group, 16)));
  const [first, last] = [read(head), read(tail ?? "")];
  return [...first, ...Array.from({ length: 8 - first.length - last.length }, () => 0), ...last];
}

/** The two groups of the IPv4 address at the end of an IPv6 address. */
function dotted(text: string): string {
  const [a = 0, b = 0, c = 0, d = 0] = text.split(".").map(Number);
  return `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`;
}

/** The host to which a socket of this family sends. */
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

/** An address for people, as `192.0.2.7:19132` or `[fe80::7%eth0]:19132`. */
export function textOf(bytes: Uint8Array): string {
  const [text = ""] = readAddresses(bytes.subarray(0, INTERFACE));
  return text.replace("]", () => `${zoneOf(bytes)}]`);
}
