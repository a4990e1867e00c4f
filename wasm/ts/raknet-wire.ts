/**
 * The parts of RakNet's wire format that TypeScript handles: the unconnected ping and pong, and addresses. Pinging
 * servers therefore needs no WebAssembly.
 */

import type { PingScope } from "./types.js";

/** The magic bytes of unconnected messages. */
const MAGIC = /* @__PURE__ */ Uint8Array.of(0, 255, 255, 0, 254, 254, 254, 254, 253, 253, 253, 253, 0x12, 0x34, 0x56, 0x78);
const PING_IDS: Readonly<Record<PingScope, number>> = { "any": 0x01, "open-connections": 0x02 };
const PONG_ID = 0x1c;
/** The length of a ping in bytes: id, time, magic, GUID. */
const PING_LENGTH = 33;
/** The protocol version of Minecraft Bedrock. Its servers put a length prefix before the data of a pong. */
const BEDROCK_VERSION = 11;
/** The length of a pong without its data in bytes: id, time, GUID, magic. */
const PONG_HEADER = 33;
const MAX_PONG_DATA = 399;

/** The contents of a pong. */
export interface PongContents {
  /** The timestamp of the ping. Some servers send their own clock instead. */
  time: bigint;
  guid: bigint;
  data: Uint8Array;
  protocolVersion: number | undefined;
}

/** Returns true if the value is a ping scope. */
export function isPingScope(scope: unknown): scope is PingScope {
  return typeof scope === "string" && Object.hasOwn(PING_IDS, scope);
}

/** Encodes a ping. */
export function writePing(scope: PingScope, time: bigint, guid: bigint): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(PING_LENGTH);
  const view = new DataView(bytes.buffer);
  view.setUint8(0, PING_IDS[scope]);
  view.setBigUint64(1, time);
  bytes.set(MAGIC, 9);
  view.setBigUint64(25, guid);
  return bytes;
}

/** Decodes a pong. Returns `undefined` for any other datagram. */
export function readPong(datagram: Uint8Array): PongContents | undefined {
  const view = new DataView(datagram.buffer, datagram.byteOffset, datagram.byteLength);
  const isPong =
    datagram.length >= PONG_HEADER &&
    datagram.length <= PONG_HEADER + MAX_PONG_DATA &&
    datagram[0] === PONG_ID &&
    MAGIC.every((byte, index) => datagram[17 + index] === byte);
  if (!isPong) {
    return undefined;
  }
  const hasLength =
    datagram.length >= PONG_HEADER + 2 && view.getUint16(PONG_HEADER) === datagram.length - PONG_HEADER - 2;
  const data = datagram.slice(hasLength ? PONG_HEADER + 2 : PONG_HEADER);
  const protocolVersion = hasLength ? BEDROCK_VERSION : undefined;
  return { time: view.getBigUint64(1), guid: view.getBigUint64(9), data, protocolVersion };
}

/** The length of an address in bytes: IPv6 and port. */
const LENGTH = 18;
/** The prefix of an IPv4-mapped IPv6 address, in groups of 16 bits (RFC 4291 section 2.5.5.2). */
const MAPPED = "0,0,0,0,0,65535";

/** Decodes addresses of 18 bytes each, as `192.0.2.7:19132` or `[2001:db8::7]:19132`. */
export function readAddresses(bytes: Uint8Array): string[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const addresses: string[] = [];
  for (let start = 0; start + LENGTH <= bytes.byteLength; start += LENGTH) {
    const groups = Array.from({ length: 8 }, (_, index) => view.getUint16(start + 2 * index));
    const isMapped = groups.slice(0, 6).join() === MAPPED;
    const host = isMapped ? bytes.slice(start + 12, start + 16).join(".") : ipv6(groups);
    addresses.push(`${host}:${view.getUint16(start + 16)}`);
  }
  return addresses;
}

/** Formats an IPv6 address in brackets, abbreviated as in URLs. */
function ipv6(groups: readonly number[]): string {
  const text = groups.map((group) => group.toString(16)).join(":");
  return new URL(`http://[${text}]`).hostname;
}
