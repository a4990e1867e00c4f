/** FNV-1a with 64 bits, by which peers compare what they have. */
export function fingerprint(bytes: Iterable<number>): bigint {
  let hash = 0xcbf2_9ce4_8422_2325n;
  for (const byte of bytes) {
    hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x0100_0000_01b3n);
  }
  return hash;
}
