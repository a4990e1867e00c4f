// Socket addresses as text.

/** The bytes of an address: those of an IPv6 address, and the port. */
const LENGTH = 18;
/** What stands before an IPv4 address inside IPv6, in groups of 16 bits (RFC 4291 section 2.5.5.2). */
const MAPPED = "0,0,0,0,0,65535";

/** Reads addresses of 18 bytes each, as `192.0.2.7:19132` or `[2001:db8::7]:19132`. */
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

/** An IPv6 address in brackets, shortened as URLs shorten it. */
function ipv6(groups: readonly number[]): string {
  const text = groups.map((group) => group.toString(16)).join(":");
  return new URL(`http://[${text}]`).hostname;
}
