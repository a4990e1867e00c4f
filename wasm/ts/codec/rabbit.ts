/**
 * Rabbit, the message encoding of the Game Protocol: unaligned bits without type information, least significant bit
 * first. A schema describes the contents of a message.
 *
 * ```ts
 * const Position = struct({ player: u8, x: f32, y: f32, name: optional(text(20)) });
 * connection.send(pack(Position, { player: 3, x: 1, y: 2, name: undefined }));
 * const position: Packed<typeof Position> = unpack(Position, message.bytes);
 * ```
 */

import { BitReader, BitWriter, CodecError } from "./cursor.js";

/** The maximum nesting depth of sequences. */
const MAX_DEPTH = 16;
const WORD_BYTES = 4;

/** Writes and reads values of a type as bits. */
export interface Schema<T> {
  /** The minimum size of a value in bits. It limits the number of elements that are created for the remaining bits. */
  readonly minBits: number;
  /** A description of the encoding, for fingerprints (docs/rabbit.md#fingerprints). Custom schemas may omit it. */
  readonly form?: string | undefined;
  write(writer: BitWriter, value: T): void;
  read(reader: BitReader, depth: number): T;
}

/** The value type of a schema. */
export type Packed<S> = S extends Schema<infer T> ? T : never;

/** Encodes a value. */
export function pack<T>(schema: Schema<T>, value: T): Uint8Array<ArrayBuffer> {
  const writer = new BitWriter("lsb");
  schema.write(writer, value);
  return writer.finish();
}

/**
 * Decodes a value. Trailing bytes are ignored, as in the original implementation of Rabbit.
 *
 * @throws CodecError if the bytes do not hold a value of the schema.
 */
export function unpack<T>(schema: Schema<T>, bytes: Uint8Array): T {
  return schema.read(new BitReader(bytes, "lsb"), 0);
}

function range(value: number | bigint, least: number | bigint, most: number | bigint): void {
  if (value < least || value > most || (typeof value === "number" && !Number.isInteger(value))) {
    throw new CodecError("out-of-range", `a number must be ${least} to ${most}, not ${value}`);
  }
}

const raw = (count: number): string => `r${String.fromCharCode(count)}`;

/** Concatenates the forms of several schemas. Returns `undefined` if one of them has none. */
function forms(schemas: readonly Schema<unknown>[], end = ""): string | undefined {
  return schemas.every(({ form }) => form !== undefined) ? schemas.map(({ form }) => form + end).join("") : undefined;
}

const enclosed = (open: string, form: string | undefined, close: string): string | undefined =>
  form === undefined ? undefined : open + form + close;

/** An unsigned integer of `count` bits, 1 to 32. */
export function bits(count: number): Schema<number> {
  const most = 2 ** count - 1;
  return {
    minBits: count,
    form: raw(count),
    write(writer, value) {
      range(value, 0, most);
      writer.bits(value, count);
    },
    read: (reader) => reader.bits(count),
  };
}

/** An unsigned integer of `count` bits, 1 to 64. */
export function bigBits(count: number): Schema<bigint> {
  const most = (1n << BigInt(count)) - 1n;
  return {
    minBits: count,
    form: raw(count),
    write(writer, value) {
      range(value, 0n, most);
      writer.bigBits(value, count);
    },
    read: (reader) => reader.bigBits(count),
  };
}

/** An unsigned integer: the number of its bytes minus one, then its bytes. */
function variable(prefix: number, width: number): Schema<bigint> {
  const most = (1n << BigInt(width)) - 1n;
  return {
    minBits: prefix + 8,
    form: `u${String.fromCharCode(prefix)}`,
    write(writer, value) {
      range(value, 0n, most);
      let bytes = 1;
      while (value >> BigInt(8 * bytes) !== 0n) {
        bytes += 1;
      }
      writer.bits(bytes - 1, prefix);
      // If there are more than four bytes, the most significant ones come first.
      for (; bytes > WORD_BYTES; bytes -= WORD_BYTES) {
        writer.bigBits(value >> BigInt(8 * (bytes - WORD_BYTES)), 32);
      }
      writer.bigBits(value, 8 * bytes);
    },
    read(reader) {
      let bytes = reader.bits(prefix) + 1;
      let value = 0n;
      for (; bytes > WORD_BYTES; bytes -= WORD_BYTES) {
        value |= reader.bigBits(32) << BigInt(8 * (bytes - WORD_BYTES));
      }
      return value | reader.bigBits(8 * bytes);
    },
  };
}

/** A signed integer. 0, -1, 1, -2, … are encoded as 0, 1, 2, 3, … */
function zigzag(unsigned: Schema<bigint>, width: number): Schema<bigint> {
  const least = -(1n << BigInt(width - 1));
  return {
    minBits: unsigned.minBits,
    form: unsigned.form?.replace("u", "i"),
    write(writer, value) {
      range(value, least, -least - 1n);
      unsigned.write(writer, value < 0n ? -2n * value - 1n : 2n * value);
    },
    read(reader, depth) {
      const number = unsigned.read(reader, depth);
      return number & 1n ? -(number + 1n) / 2n : number / 2n;
    },
  };
}

/** Converts a schema of `bigint` to `number`, for widths that fit. */
function asNumber(schema: Schema<bigint>): Schema<number> {
  return {
    minBits: schema.minBits,
    form: schema.form,
    write(writer, value) {
      range(value, Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER);
      schema.write(writer, BigInt(value));
    },
    read: (reader, depth) => Number(schema.read(reader, depth)),
  };
}

export const bool: Schema<boolean> = {
  minBits: 1,
  form: "b",
  write: (writer, value) => writer.bit(value),
  read: (reader) => reader.bit(),
};
export const u8: Schema<number> = /* @__PURE__ */ bits(8);
export const u64: Schema<bigint> = /* @__PURE__ */ variable(3, 64);
export const u128: Schema<bigint> = /* @__PURE__ */ variable(4, 128);
export const i64: Schema<bigint> = /* @__PURE__ */ zigzag(u64, 64);
export const i128: Schema<bigint> = /* @__PURE__ */ zigzag(u128, 128);
export const u16: Schema<number> = /* @__PURE__ */ asNumber(/* @__PURE__ */ variable(1, 16));
export const u32: Schema<number> = /* @__PURE__ */ asNumber(/* @__PURE__ */ variable(2, 32));
export const i16: Schema<number> = /* @__PURE__ */ asNumber(/* @__PURE__ */ zigzag(/* @__PURE__ */ variable(1, 16), 16));
export const i32: Schema<number> = /* @__PURE__ */ asNumber(/* @__PURE__ */ zigzag(/* @__PURE__ */ variable(2, 32), 32));

/** A floating-point number of 32 bits. */
export const f32: Schema<number> = {
  minBits: 32,
  form: "f",
  write(writer, value) {
    const view = new DataView(new ArrayBuffer(4));
    view.setFloat32(0, value);
    writer.bits(view.getUint32(0), 32);
  },
  read(reader) {
    const view = new DataView(new ArrayBuffer(4));
    view.setUint32(0, reader.bits(32));
    return view.getFloat32(0);
  },
};

/** A floating-point number of 64 bits, high half first. */
export const f64: Schema<number> = {
  minBits: 64,
  form: "d",
  write(writer, value) {
    const view = new DataView(new ArrayBuffer(8));
    view.setFloat64(0, value);
    writer.bits(view.getUint32(0), 32);
    writer.bits(view.getUint32(4), 32);
  },
  read(reader) {
    const view = new DataView(new ArrayBuffer(8));
    view.setUint32(0, reader.bits(32));
    view.setUint32(4, reader.bits(32));
    return view.getFloat64(0);
  },
};

/** Writes the number of elements. */
function writeCount(writer: BitWriter, count: number, most: number): void {
  if (count > most) {
    throw new CodecError("too-many", `${count} items are more than the ${most} allowed`);
  }
  u32.write(writer, count);
}

/** Reads the number of elements and checks it against the limit and the remaining bits. */
function readCount(reader: BitReader, minBits: number, most: number): number {
  const count = u32.read(reader, 0);
  const limit = Math.min(most, Math.floor(reader.remaining / minBits));
  if (count > limit) {
    throw new CodecError("too-many", `${count} items are announced, and at most ${limit} can follow`);
  }
  return count;
}

/** A text of at most `most` bytes (UTF-8). */
export function text(most = 0xffff_ffff): Schema<string> {
  return {
    minBits: u32.minBits,
    form: "t",
    write(writer, value) {
      const bytes = new TextEncoder().encode(value);
      writeCount(writer, bytes.length, most);
      writer.bytes(bytes);
    },
    read(reader) {
      const bytes = reader.bytes(readCount(reader, 8, most));
      try {
        return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
      } catch {
        throw new CodecError("bad-utf8", "a text is not valid UTF-8");
      }
    },
  };
}

/** A list of at most `most` values. Each value must take at least one bit. */
export function list<T>(element: Schema<T>, most = 0xffff_ffff): Schema<T[]> {
  return {
    minBits: u32.minBits,
    form: enclosed("[", element.form, "]"),
    write(writer, values) {
      writeCount(writer, values.length, most);
      values.forEach((value) => element.write(writer, value));
    },
    read(reader, depth) {
      if (depth >= MAX_DEPTH) {
        throw new CodecError("too-deep", `sequences are nested more than ${MAX_DEPTH} deep`);
      }
      const count = readCount(reader, Math.max(1, element.minBits), most);
      return Array.from({ length: count }, () => element.read(reader, depth + 1));
    },
  };
}

/** A value or `undefined`. */
export function optional<T>(schema: Schema<T>): Schema<T | undefined> {
  return {
    minBits: 1,
    form: enclosed("(", schema.form, ")"),
    write(writer, value) {
      writer.bit(value !== undefined);
      if (value !== undefined) {
        schema.write(writer, value);
      }
    },
    read: (reader, depth) => (reader.bit() ? schema.read(reader, depth) : undefined),
  };
}

/** A sequence of values, each with its own schema. */
export function tuple<T extends readonly unknown[]>(...schemas: { [K in keyof T]: Schema<T[K]> }): Schema<T> {
  const all = schemas as unknown as readonly Schema<unknown>[];
  return {
    minBits: all.reduce((sum, { minBits }) => sum + minBits, 0),
    form: forms(all),
    write: (writer, values) => all.forEach((schema, index) => schema.write(writer, values[index])),
    read: (reader, depth) => all.map((schema) => schema.read(reader, depth)) as unknown as T,
  };
}

/** The fields of an object, in the order of the schema. */
export function struct<T extends object>(fields: { [K in keyof T]: Schema<T[K]> }): Schema<T> {
  const entries = Object.entries(fields) as [keyof T, Schema<unknown>][];
  return {
    minBits: entries.reduce((sum, [, { minBits }]) => sum + minBits, 0),
    form: forms(entries.map(([, schema]) => schema)),
    write: (writer, value) => entries.forEach(([name, schema]) => schema.write(writer, value[name])),
    read: (reader, depth) => Object.fromEntries(entries.map(([name, schema]) => [name, schema.read(reader, depth)])) as T,
  };
}

/** A value and the name of its kind. */
export type Variant<T> = { [K in keyof T]: { readonly kind: K; readonly value: T[K] } }[keyof T];

/** One of several kinds: the index of the kind in as few bits as the largest index needs, then its value. */
export function variants<T extends object>(kinds: { [K in keyof T]: Schema<T[K]> }): Schema<Variant<T>> {
  const entries = Object.entries(kinds) as [keyof T, Schema<unknown>][];
  const width = 32 - Math.clz32(entries.length - 1);
  return {
    minBits: width + Math.min(...entries.map(([, { minBits }]) => minBits)),
    form: enclosed("<", forms(entries.map(([, schema]) => schema), "|"), ">"),
    write(writer, { kind, value }) {
      const index = entries.findIndex(([name]) => name === kind);
      if (index < 0) {
        throw new CodecError("out-of-range", `unknown kind ${String(kind)}`);
      }
      writer.bits(index, width);
      (entries[index] as [keyof T, Schema<unknown>])[1].write(writer, value);
    },
    read(reader, depth) {
      const index = reader.bits(width);
      const entry = entries[index];
      if (entry === undefined) {
        throw new CodecError("out-of-range", `unknown kind with the index ${index}`);
      }
      return { kind: entry[0], value: entry[1].read(reader, depth) } as Variant<T>;
    },
  };
}

/** The schema of a kind without a value, for {@link variants}. */
export const nothing: Schema<undefined> = { minBits: 0, form: "", write: () => undefined, read: () => undefined };
