/** Cursors over bytes and over bits, message ids, and the errors of encoding and decoding. */

const FIRST_SIZE = 64;
const decoder = /* @__PURE__ */ new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Prepends an id to a message, as RakNet requires. Applications may use the ids 0x86 to 0xFF. */
export function withId(id: number, body: Uint8Array): Uint8Array<ArrayBuffer> {
  const message = new Uint8Array(1 + body.length);
  message[0] = id;
  message.set(body, 1);
  return message;
}

/** Splits a message into its id and its body, without copying. */
export function splitId(message: Uint8Array): { id: number; body: Uint8Array } {
  if (message.length === 0) {
    throw new CodecError("truncated", "the message is empty; it must begin with an id");
  }
  return { id: message[0] as number, body: message.subarray(1) };
}

/** Writes numbers, texts and bytes, little-endian unless stated otherwise. */
export class ByteWriter {
  readonly #isLittle: boolean;
  #bytes = new Uint8Array(FIRST_SIZE);
  #view = new DataView(this.#bytes.buffer);
  #at = 0;

  constructor(order: "little" | "big" = "little") {
    this.#isLittle = order === "little";
  }

  /** The number of bytes written. */
  get position(): number {
    return this.#at;
  }

  u8(value: number): this {
    this.#take(1).setUint8(this.#at - 1, value);
    return this;
  }

  i8(value: number): this {
    this.#take(1).setInt8(this.#at - 1, value);
    return this;
  }

  u16(value: number): this {
    this.#take(2).setUint16(this.#at - 2, value, this.#isLittle);
    return this;
  }

  i16(value: number): this {
    this.#take(2).setInt16(this.#at - 2, value, this.#isLittle);
    return this;
  }

  u32(value: number): this {
    this.#take(4).setUint32(this.#at - 4, value, this.#isLittle);
    return this;
  }

  i32(value: number): this {
    this.#take(4).setInt32(this.#at - 4, value, this.#isLittle);
    return this;
  }

  u64(value: bigint): this {
    this.#take(8).setBigUint64(this.#at - 8, value, this.#isLittle);
    return this;
  }

  i64(value: bigint): this {
    this.#take(8).setBigInt64(this.#at - 8, value, this.#isLittle);
    return this;
  }

  f32(value: number): this {
    this.#take(4).setFloat32(this.#at - 4, value, this.#isLittle);
    return this;
  }

  f64(value: number): this {
    this.#take(8).setFloat64(this.#at - 8, value, this.#isLittle);
    return this;
  }

  bytes(bytes: Uint8Array): this {
    this.#take(bytes.length);
    this.#bytes.set(bytes, this.#at - bytes.length);
    return this;
  }

  /** Writes a `u16` length prefix and the text in UTF-8, at most 65,535 bytes. */
  text(text: string): this {
    const bytes = new TextEncoder().encode(text);
    if (bytes.length > 0xffff) {
      throw new CodecError("too-many", `a text has at most 65,535 bytes, not ${bytes.length}`);
    }
    return this.u16(bytes.length).bytes(bytes);
  }

  /** Returns a copy of the written bytes. */
  finish(): Uint8Array<ArrayBuffer> {
    return this.#bytes.slice(0, this.#at);
  }

  /** Advances by `length` bytes and returns a view of the whole buffer. */
  #take(length: number): DataView {
    this.#at += length;
    if (this.#at > this.#bytes.length) {
      const grown = new Uint8Array(Math.max(this.#at, 2 * this.#bytes.length));
      grown.set(this.#bytes);
      this.#bytes = grown;
      this.#view = new DataView(grown.buffer);
    }
    return this.#view;
  }
}

/**
 * Reads the output of a {@link ByteWriter}. Reading beyond the end throws a {@link CodecError} and consumes nothing.
 */
export class ByteReader {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  readonly #isLittle: boolean;
  #at = 0;

  constructor(bytes: Uint8Array, order: "little" | "big" = "little") {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#isLittle = order === "little";
  }

  get position(): number {
    return this.#at;
  }

  get remaining(): number {
    return this.#bytes.length - this.#at;
  }

  u8(): number {
    return this.#view.getUint8(this.#take(1));
  }

  i8(): number {
    return this.#view.getInt8(this.#take(1));
  }

  u16(): number {
    return this.#view.getUint16(this.#take(2), this.#isLittle);
  }

  i16(): number {
    return this.#view.getInt16(this.#take(2), this.#isLittle);
  }

  u32(): number {
    return this.#view.getUint32(this.#take(4), this.#isLittle);
  }

  i32(): number {
    return this.#view.getInt32(this.#take(4), this.#isLittle);
  }

  u64(): bigint {
    return this.#view.getBigUint64(this.#take(8), this.#isLittle);
  }

  i64(): bigint {
    return this.#view.getBigInt64(this.#take(8), this.#isLittle);
  }

  f32(): number {
    return this.#view.getFloat32(this.#take(4), this.#isLittle);
  }

  f64(): number {
    return this.#view.getFloat64(this.#take(8), this.#isLittle);
  }

  /** Reads bytes without copying them. */
  bytes(count: number): Uint8Array {
    const at = this.#take(count);
    return this.#bytes.subarray(at, at + count);
  }

  text(): string {
    const before = this.#at;
    const bytes = this.u16();
    try {
      return decoder.decode(this.bytes(bytes));
    } catch (error) {
      this.#at = before;
      throw error instanceof CodecError ? error : new CodecError("bad-utf8", "a text is not valid UTF-8");
    }
  }

  #take(length: number): number {
    if (length > this.remaining) {
      throw new CodecError("truncated", `${length} bytes are needed at byte ${this.#at}, but only ${this.remaining} are left`);
    }
    const at = this.#at;
    this.#at += length;
    return at;
  }
}

/** The reason of a {@link CodecError}. */
export type CodecErrorCode =
  /** The bytes end before the value. */
  | "truncated"
  /** A value is outside the range of its encoding. */
  | "out-of-range"
  /** There are more elements or bytes than the caller allows. */
  | "too-many"
  /** A text is not valid UTF-8. */
  | "bad-utf8"
  /** Sequences are nested more than 16 deep. */
  | "too-deep";

/** An error of encoding or decoding. Decode untrusted data only where this error is handled. */
export class CodecError extends Error {
  override readonly name = "CodecError";
  readonly code: CodecErrorCode;

  constructor(code: CodecErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}

/** The bit order within bytes and numbers: least or most significant bit first. */
export type BitOrder = "lsb" | "msb";

/** The maximum width in bits of a value of the type `number`. Wider values are passed as `bigint`. */
const WORD = 32;

function checkWidth(count: number): void {
  if (count > WORD) {
    throw new CodecError("out-of-range", `a number has at most ${WORD} bits, not ${count}; a bigint may have more`);
  }
}

/** Writes numbers as bits. The buffer grows as needed. The last byte is padded with zero bits. */
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

  /** Creates a reader of the first `count` bits. Default: all bits. */
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

  /** Advances to the next byte boundary, but not beyond the end. */
  align(): void {
    this.#at = Math.min(this.#end, (this.#at + 7) & ~7);
  }

  #check(count: number): void {
    if (count > this.remaining) {
      throw new CodecError("truncated", `${count} bits are needed at bit ${this.#at}, but only ${this.remaining} are left`);
    }
  }
}
