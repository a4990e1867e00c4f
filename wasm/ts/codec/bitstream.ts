/**
 * RakNet's bit stream, the message format of games that use that library: the most significant bit of each byte comes
 * first, and values are aligned only where documented.
 *
 * ```ts
 * const writer = new BitStreamWriter();
 * writer.write(bool, true);
 * writer.writeCompressed(u32, 5);
 * writer.string(new TextEncoder().encode("hi"));
 * connection.send(withId(0x86, writer.finish()));
 * ```
 */

import { BitReader, BitWriter, CodecError } from "./cursor.js";

/** A value type of a bit stream. */
export interface Item<T> {
  /** True if a delta starts with a bit that is set if the value changed. A one-bit value needs no such bit. */
  readonly hasDeltaFlag: boolean;
  write(bits: BitWriter, value: T): void;
  read(bits: BitReader): T;
  writeCompressed(bits: BitWriter, value: T): void;
  readCompressed(bits: BitReader): T;
}

/** The number of steps per unit of a compressed `f32` from -1 to 1. */
const F32_STEPS = 32_767.5;
/** The number of steps per unit of a compressed `f64` from -1 to 1. */
const F64_STEPS = 2_147_483_648;
/** The number of steps of a 16-bit number in a range. */
const STEPS = 65_535;
/** Vectors shorter than this are encoded without a direction. */
const NO_DIRECTION = 0.000_01;
const MAX_STRING = 0xffff;

function outOfRange(what: string): CodecError {
  return new CodecError("out-of-range", what);
}

/** Returns the bytes of a number, most significant byte first. */
function bigEndian(value: bigint, width: number): Uint8Array {
  return Uint8Array.from({ length: width / 8 }, (_, index) => Number((value >> BigInt(width - 8 * (index + 1))) & 0xffn));
}

/**
 * Omits leading zero bytes: writes a set bit for each, then a clear bit and the remaining bytes. If one byte remains, a
 * zero high nibble is omitted in the same way.
 */
function writeCompressed(bits: BitWriter, bytes: Uint8Array): void {
  for (let length = bytes.length; length > 1; length--) {
    if (bytes[length - 1] !== 0) {
      bits.bit(false);
      bits.bytes(bytes.subarray(0, length));
      return;
    }
    bits.bit(true);
  }
  const byte = bytes[0] as number;
  bits.bit(byte < 16);
  bits.bits(byte, byte < 16 ? 4 : 8);
}

function readCompressed(bits: BitReader, width: number): bigint {
  let bytes: ArrayLike<number> = [];
  let length = width / 8;
  while (length > 1 && bits.bit()) {
    length -= 1;
  }
  bytes = length > 1 ? bits.bytes(length) : [bits.bits(bits.bit() ? 4 : 8)];
  let value = 0n;
  for (let index = 0; index < width / 8; index++) {
    value = (value << 8n) | BigInt(bytes[index] ?? 0);
  }
  return value;
}

function bigInteger(width: number, isSigned: boolean): Item<bigint> {
  const fit = (value: bigint): bigint => (isSigned ? BigInt.asIntN(width, value) : BigInt.asUintN(width, value));
  const check = (value: bigint): bigint => {
    if (fit(value) !== value) {
      throw outOfRange(`${value} does not fit into ${width} bits`);
    }
    return BigInt.asUintN(width, value);
  };
  return {
    hasDeltaFlag: true,
    write: (bits, value) => bits.bigBits(check(value), width),
    read: (bits) => fit(bits.bigBits(width)),
    writeCompressed: (bits, value) => writeCompressed(bits, bigEndian(check(value), width)),
    readCompressed: (bits) => fit(readCompressed(bits, width)),
  };
}

function integer(width: number, isSigned: boolean): Item<number> {
  const big = bigInteger(width, isSigned);
  const check = (value: number): bigint => {
    if (!Number.isInteger(value)) {
      throw outOfRange(`${value} is not an integer`);
    }
    return BigInt(value);
  };
  return {
    hasDeltaFlag: true,
    write: (bits, value) => big.write(bits, check(value)),
    read: (bits) => Number(big.read(bits)),
    writeCompressed: (bits, value) => big.writeCompressed(bits, check(value)),
    readCompressed: (bits) => Number(big.readCompressed(bits)),
  };
}

export const u8: Item<number> = /* @__PURE__ */ integer(8, false);
export const u16: Item<number> = /* @__PURE__ */ integer(16, false);
export const u32: Item<number> = /* @__PURE__ */ integer(32, false);
export const u64: Item<bigint> = /* @__PURE__ */ bigInteger(64, false);
export const i8: Item<number> = /* @__PURE__ */ integer(8, true);
export const i16: Item<number> = /* @__PURE__ */ integer(16, true);
export const i32: Item<number> = /* @__PURE__ */ integer(32, true);
export const i64: Item<bigint> = /* @__PURE__ */ bigInteger(64, true);

/** One bit, including in deltas. */
export const bool: Item<boolean> = {
  hasDeltaFlag: false,
  write: (bits, value) => bits.bit(value),
  read: (bits) => bits.bit(),
  writeCompressed: (bits, value) => bits.bit(value),
  readCompressed: (bits) => bits.bit(),
};

/** 24 bits, aligned and little-endian. */
export const u24: Item<number> = {
  hasDeltaFlag: true,
  write(bits, value) {
    bits.align();
    bits.bytes(Uint8Array.of(value, value >>> 8, value >>> 16));
  },
  read(bits) {
    bits.align();
    const [low, middle, high] = bits.bytes(3) as unknown as [number, number, number];
    return low | (middle << 8) | (high << 16);
  },
  writeCompressed: (bits, value) => u24.write(bits, value),
  readCompressed: (bits) => u24.read(bits),
};

/** 32 bits, or 16 bits when compressed, which requires -1 to 1. */
export const f32: Item<number> = {
  hasDeltaFlag: true,
  write(bits, value) {
    const view = new DataView(new ArrayBuffer(4));
    view.setFloat32(0, value);
    bits.bits(view.getUint32(0), 32);
  },
  read(bits) {
    const view = new DataView(new ArrayBuffer(4));
    view.setUint32(0, bits.bits(32));
    return view.getFloat32(0);
  },
  writeCompressed: (bits, value) => bits.bits(clamped(Math.fround(Math.fround(value + 1) * F32_STEPS), STEPS), 16),
  readCompressed: (bits) => Math.fround(Math.fround(bits.bits(16) / F32_STEPS) - 1),
};

/** 64 bits, or 32 bits when compressed, which requires -1 to 1. */
export const f64: Item<number> = {
  hasDeltaFlag: true,
  write(bits, value) {
    const view = new DataView(new ArrayBuffer(8));
    view.setFloat64(0, value);
    bits.bits(view.getUint32(0), 32);
    bits.bits(view.getUint32(4), 32);
  },
  read(bits) {
    const view = new DataView(new ArrayBuffer(8));
    view.setUint32(0, bits.bits(32));
    view.setUint32(4, bits.bits(32));
    return view.getFloat64(0);
  },
  writeCompressed: (bits, value) => bits.bits(clamped((value + 1) * F64_STEPS, 0xffff_ffff), 32),
  readCompressed: (bits) => bits.bits(32) / F64_STEPS - 1,
};

/** Truncates a number to an integer and clamps it to 0 to `most`; NaN becomes 0. */
function clamped(value: number, most: number): number {
  return Math.min(most, Math.max(0, Math.trunc(value))) || 0;
}

/** Returns the number of bits of an integer in a range. */
function widthOf(least: number, most: number): number {
  const width = most - least;
  if (!Number.isInteger(width) || width < 0 || width > 0xffff_ffff) {
    throw outOfRange(`${least} to ${most} is not a range of at most 2^32 integers`);
  }
  return 32 - Math.clz32(width);
}

/** The coordinates x, y and z. */
export type Vector = readonly [number, number, number];
/** A rotation as a unit quaternion. */
export interface Quaternion {
  readonly w: number;
  readonly x: number;
  readonly y: number;
  readonly z: number;
}

/** Writes a bit stream. */
export class BitStreamWriter {
  /** The underlying bit writer, for encodings that RakNet does not define. */
  readonly bits: BitWriter = new BitWriter("msb");

  /** Returns a copy of the written bytes. The last byte is padded with zeros. */
  finish(): Uint8Array<ArrayBuffer> {
    return this.bits.finish();
  }

  write<T>(item: Item<T>, value: T): void {
    item.write(this.bits, value);
  }

  writeCompressed<T>(item: Item<T>, value: T): void {
    item.writeCompressed(this.bits, value);
  }

  /** Writes a value, or a single bit if it equals `last`. The reader must know `last`. */
  writeDelta<T>(item: Item<T>, value: T, last: T): void {
    if (this.#follows(item, value, last)) {
      item.write(this.bits, value);
    }
  }

  writeCompressedDelta<T>(item: Item<T>, value: T, last: T): void {
    if (this.#follows(item, value, last)) {
      item.writeCompressed(this.bits, value);
    }
  }

  alignedBytes(bytes: Uint8Array): void {
    this.bits.align();
    this.bits.bytes(bytes);
  }

  /** Writes a compressed 32-bit length, aligns, and writes the bytes. */
  alignedBytesSafe(bytes: Uint8Array): void {
    this.writeCompressed(u32, bytes.length);
    if (bytes.length > 0) {
      this.alignedBytes(bytes);
    }
  }

  /**
   * Writes a string of at most 65,535 bytes. RakNet defines no character encoding, so the caller encodes the string.
   */
  string(bytes: Uint8Array): void {
    if (bytes.length > MAX_STRING) {
      throw new CodecError("too-many", `a string has at most ${MAX_STRING} bytes, not ${bytes.length}`);
    }
    this.write(u16, bytes.length);
    this.alignedBytes(bytes);
  }

  /** Writes an integer in a range with as few bits as the range needs, low byte first. */
  ranged(value: number, least: number, most: number): void {
    const count = widthOf(least, most);
    if (!Number.isInteger(value) || value < least || value > most) {
      throw outOfRange(`a number must be ${least} to ${most}, not ${value}`);
    }
    for (let shift = 0; shift < count; shift += 8) {
      this.bits.bits((value - least) >>> shift, Math.min(8, count - shift));
    }
  }

  /** Writes a number in a range as 16 bits. Numbers outside the range are clamped. */
  float16(value: number, least: number, most: number): void {
    const above = Math.fround(Math.fround(value) - Math.fround(least));
    this.bits.bits(clamped(Math.fround(Math.fround(STEPS * above) / Math.fround(most - least)), STEPS), 16);
  }

  /** Writes a vector of any length in 80 bits, or in 32 bits if it is shorter than 0.00001. */
  vector(vector: Vector): void {
    const [x, y, z] = vector.map(Math.fround) as unknown as Vector;
    const length = Math.fround(Math.sqrt(Math.fround(Math.fround(x * x) + Math.fround(y * y)) + Math.fround(z * z)));
    if (!Number.isFinite(length)) {
      throw outOfRange("the length of a vector is not finite");
    }
    this.write(f32, length);
    if (length > NO_DIRECTION) {
      [x, y, z].forEach((part) => this.writeCompressed(f32, Math.fround(part / length)));
    }
  }

  /** Writes a unit vector in 48 bits. */
  unitVector(vector: Vector): void {
    vector.forEach((part) => this.float16(part, -1, 1));
  }

  /** Writes a rotation in 52 bits. */
  unitQuaternion({ w, x, y, z }: Quaternion): void {
    [w, x, y, z].forEach((part) => this.bits.bit(part < 0));
    [x, y, z].forEach((part) => this.bits.bits(clamped(Math.abs(Math.fround(part)) * STEPS, STEPS), 16));
  }

  #follows<T>(item: Item<T>, value: T, last: T): boolean {
    const follows = !item.hasDeltaFlag || value !== last;
    if (item.hasDeltaFlag) {
      this.bits.bit(follows);
    }
    return follows;
  }
}

/** Reads a bit stream. Invalid or missing data throws a {@link CodecError}. */
export class BitStreamReader {
  /** The underlying bit reader, for encodings that RakNet does not define. */
  readonly bits: BitReader;

  /** Creates a reader of the first `count` bits. Default: all bits. */
  constructor(bytes: Uint8Array, count?: number) {
    this.bits = new BitReader(bytes, "msb", count);
  }

  /** The number of bits that remain. */
  get remaining(): number {
    return this.bits.remaining;
  }

  read<T>(item: Item<T>): T {
    return item.read(this.bits);
  }

  readCompressed<T>(item: Item<T>): T {
    return item.readCompressed(this.bits);
  }

  readDelta<T>(item: Item<T>, last: T): T {
    return item.hasDeltaFlag && !this.bits.bit() ? last : item.read(this.bits);
  }

  readCompressedDelta<T>(item: Item<T>, last: T): T {
    return item.hasDeltaFlag && !this.bits.bit() ? last : item.readCompressed(this.bits);
  }

  alignedBytes(count: number): Uint8Array<ArrayBuffer> {
    this.bits.align();
    return this.bits.bytes(count);
  }

  /** Reads the output of {@link BitStreamWriter.alignedBytesSafe}, at most `most` bytes. */
  alignedBytesSafe(most: number): Uint8Array<ArrayBuffer> {
    const count = this.readCompressed(u32);
    if (count > most) {
      throw new CodecError("too-many", `${count} bytes are announced, more than the ${most} allowed`);
    }
    return count === 0 ? new Uint8Array(0) : this.alignedBytes(count);
  }

  string(): Uint8Array<ArrayBuffer> {
    return this.alignedBytes(this.read(u16));
  }

  ranged(least: number, most: number): number {
    const count = widthOf(least, most);
    let above = 0;
    for (let shift = 0; shift < count; shift += 8) {
      above += this.bits.bits(Math.min(8, count - shift)) * 2 ** shift;
    }
    if (above > most - least) {
      throw outOfRange(`a number is not ${least} to ${most}`);
    }
    return least + above;
  }

  float16(least: number, most: number): number {
    const width = Math.fround(most - least);
    const value = Math.fround(least + Math.fround(Math.fround(this.bits.bits(16) / STEPS) * width));
    return Math.min(most, Math.max(least, value));
  }

  vector(): Vector {
    const length = this.read(f32);
    if (!Number.isFinite(length)) {
      throw outOfRange("the length of a vector is not finite");
    }
    return length <= NO_DIRECTION ? [0, 0, 0] : this.#each(() => Math.fround(this.readCompressed(f32) * length));
  }

  unitVector(): Vector {
    return this.#each(() => this.float16(-1, 1));
  }

  /** Reads a rotation. Only the sign of w is encoded; its magnitude follows from x, y and z. */
  unitQuaternion(): Quaternion {
    const sign = (): number => (this.bits.bit() ? -1 : 1);
    const wSign = sign();
    const [xSign, ySign, zSign] = this.#each(sign);
    const [x, y, z] = this.#each(() => Math.fround(this.bits.bits(16) / STEPS));
    const w = Math.fround(Math.sqrt(Math.max(0, 1 - x * x - y * y - z * z)));
    return { w: w * wSign, x: x * xSign, y: y * ySign, z: z * zSign };
  }

  #each(read: () => number): Vector {
    return [read(), read(), read()];
  }
}
