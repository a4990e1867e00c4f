/** The size of messages on the wire, computed like `rakwire overhead`. */

import layouts from "./layouts.json";

/** The size of the IPv4 and UDP headers of a datagram in bytes. */
const IP_UDP = 28;

/** A format and reliability of messages with the sizes of its headers in bits, from `rakwire overhead --json`. */
export type Layout = (typeof layouts)[number];

export interface Messages {
  /** The size of each message in bytes. */
  readonly size: number;
  /** The number of messages sent together. */
  readonly count: number;
  /** The MTU in bytes, including IP and UDP headers. */
  readonly mtu: number;
}

export interface Cost {
  readonly datagrams: number;
  /** The total size of the datagrams in bytes, including IP and UDP headers. */
  readonly bytes: number;
}

export { layouts };

/** Returns the length in bytes of the longest message that is not split. */
function longest(layout: Layout, mtu: number): number {
  return layout.longest_bytes ?? Math.floor((8 * (mtu - IP_UDP) - (layout.longest_beside_bits ?? 0)) / 8);
}

export function cost(layout: Layout, { size, count, mtu }: Messages): Cost {
  const datagram = (bits: number): number => IP_UDP + Math.ceil((layout.datagram_bits + bits) / 8);
  const part = longest(layout, mtu);
  if (size > part) {
    const [whole, rest] = [Math.floor(size / part), size % part];
    const bytes = (payload: number): number => datagram(layout.part_bits + 8 * payload);
    const each = whole * bytes(part) + (rest === 0 ? 0 : bytes(rest));
    return { datagrams: count * (whole + (rest === 0 ? 0 : 1)), bytes: count * each };
  }
  const each = layout.message_bits + 8 * size;
  const room = 8 * (mtu - IP_UDP) - layout.reserved_bits;
  const together = layout.is_shared ? Math.max(1, Math.floor(room / each)) : 1;
  const [full, rest] = [Math.floor(count / together), count % together];
  const last = rest === 0 ? 0 : datagram(rest * each);
  return { datagrams: full + (rest === 0 ? 0 : 1), bytes: full * datagram(together * each) + last };
}
