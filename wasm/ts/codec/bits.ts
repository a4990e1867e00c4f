/** Writes and reads numbers of any width, bit by bit. */

import { CodecError } from "./cursor.js";

/** The bit order within bytes and numbers: least or most significant bit first. */
export type BitOrder = "lsb" | "msb";

/** The widest number that is not a `bigint`, in bits. */
const WORD = 32;
const FIRST_SIZE = 64;

function checkWidth(count: number): void {
  if (count > WORD) {
    throw new CodecError("out-of-range", `a number has at most ${WORD} bits, not ${count}; a bigint may have more`);
  }
}

/** Writes numbers as bits. The buffer grows as needed, and the last byte is padded with zeros. */
export class BitWriter {
  readonly #isLsb: boolean;
  #bytes = new Uint8Array(FIRST_SIZE);
  #at = 0;

  constructor(order: BitOrder) {
    this.#isLsb = order === "lsb";
  }

  /** The number of bits written. */
  get position(): number {
    return this.#at;
  }

  bit(bit: boolean): void {
    this.bits(bit ? 1 : 0, 1);
  }

  /** Writes the low `count` bits of a number, 0 to 32. */
  bits(number: number, count: number): void {
    checkWidth(count);
    this.#reserve(count);
    for (let left = count; left > 0; ) {
      const used = this.#at & 7;
      const taken = Math.min(8 - used, left);
      const part = (this.#isLsb ? number >>> (count - left) : number >>> (left - taken)) & ((1 << taken) - 1);
      const index = this.#at >>> 3;
      this.#bytes[index] = (this.#bytes[index] as number) | (part << (this.#isLsb ? used : 8 - used - taken));
      this.#at += taken;
      left -= taken;
    }
  }

  /** Writes the low `count` bits of a number of any width. */
  bigBits(number: bigint, count: number): void {
    for (let left = count; left > 0; ) {
      const taken = Math.min(WORD, left);
      const shift = this.#isLsb ? count - left : left - taken;
      this.bits(Number(BigInt.asUintN(taken, number >> BigInt(shift))), taken);
      left -= taken;
    }
  }

  bytes(bytes: Uint8Array): void {
    this.#reserve(8 * bytes.length);
    if ((this.#at & 7) === 0) {
      this.#bytes.set(bytes, this.#at >>> 3);
      this.#at += 8 * bytes.length;
      return;
    }
    bytes.forEach((byte) => this.bits(byte, 8));
  }

  /** Advances to the next byte boundary. */
  align(): void {
    this.bits(0, -this.#at & 7);
  }

  /** Returns a copy of the written bytes. */
  finish(): Uint8Array<ArrayBuffer> {
    return this.#bytes.slice(0, (this.#at + 7) >>> 3);
  }

  #reserve(bits: number): void {
    const needed = (this.#at + bits + 7) >>> 3;
    if (needed > this.#bytes.length) {
      const grown = new Uint8Array(Math.max(needed, 2 * this.#bytes.length));
      grown.set(this.#bytes);
      this.#bytes = grown;
    }
  }
}

/** Reads the output of a {@link BitWriter}. Reading beyond the end throws a {@link CodecError} and consumes nothing. */
export class BitReader {
  readonly #bytes: Uint8Array;
  readonly #isLsb: boolean;
  readonly #end: number;
  #at = 0;

  /** Creates a reader of the first `count` bits; all by default. */
  constructor(bytes: Uint8Array, order: BitOrder, count = 8 * bytes.length) {
    if (count > 8 * bytes.length) {
      throw new CodecError("truncated", `there are ${8 * bytes.length} bits, not ${count}`);
    }
    this.#bytes = bytes;
    this.#isLsb = order === "lsb";
    this.#end = count;
  }

  get position(): number {
    return this.#at;
  }

  get remaining(): number {
    return this.#end - this.#at;
  }

  bit(): boolean {
    return this.bits(1) === 1;
  }

  /** Reads a number of `count` bits, 0 to 32. */
  bits(count: number): number {
    checkWidth(count);
    this.#check(count);
    let number = 0;
    for (let left = count; left > 0; ) {
      const used = this.#at & 7;
      const taken = Math.min(8 - used, left);
      const byte = this.#bytes[this.#at >>> 3] as number;
      const part = (byte >>> (this.#isLsb ? used : 8 - used - taken)) & ((1 << taken) - 1);
      number |= part << (this.#isLsb ? count - left : left - taken);
      this.#at += taken;
      left -= taken;
    }
    return number >>> 0;
  }

  /** Reads a number of any width. */
  bigBits(count: number): bigint {
    this.#check(count);
    let number = 0n;
    for (let left = count; left > 0; ) {
      const taken = Math.min(WORD, left);
      number |= BigInt(this.bits(taken)) << BigInt(this.#isLsb ? count - left : left - taken);
      left -= taken;
    }
    return number;
  }

  /** Reads bytes into a copy. */
  bytes(count: number): Uint8Array<ArrayBuffer> {
    this.#check(8 * count);
    if ((this.#at & 7) === 0) {
      const start = this.#at >>> 3;
      this.#at += 8 * count;
      return this.#bytes.slice(start, start + count) as Uint8Array<ArrayBuffer>;
    }
    return Uint8Array.from({ length: count }, () => this.bits(8));
  }

  /** Advances to the next byte boundary, at most to the end. */
  align(): void {
    this.#at = Math.min(this.#end, (this.#at + 7) & ~7);
  }

  #check(count: number): void {
    if (count > this.remaining) {
      throw new CodecError("truncated", `${count} bits are wanted at bit ${this.#at}, and ${this.remaining} are left`);
    }
  }
}
