// The encodings of message contents, compared with the encodings of the Rust core, RakNet and the original Rabbit.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { aggregate, BitReader, BitWriter, bitstream, ByteReader, ByteWriter, CodecError, rabbit, splitId, withId } from "rakwire/codec";

const hex = (bytes) => Buffer.from(bytes).toString("hex");
const fromHex = (text) => new Uint8Array(Buffer.from(text, "hex"));
const ascii = (text) => new TextEncoder().encode(text);
const fails = (code) => (error) => error instanceof CodecError && error.code === code;
const NEAR = 0.001;

function near(found, wanted) {
  [found].flat().forEach((number, index) => assert.ok(Math.abs(number - [wanted].flat()[index]) < NEAR, `${found} is not ${wanted}`));
}

/** Pseudorandom numbers, the same in each run. */
function* numbers(seed) {
  for (let state = seed; ; ) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    yield state;
  }
}

const { bool, f32, f64, i32, u8, u16, u24, u32 } = bitstream;
const VECTOR = [3, 0, 4];
const ROTATION = { w: 0.5, x: -0.5, y: 0.5, z: 0.5 };

test("every write method grows the buffer at any position", () => {
  const kinds = { u8: 1, i8: 1, u16: 2, i16: 2, u32: 4, i32: 4, u64: 8, i64: 8, f32: 4, f64: 8 };
  for (const [kind, size] of Object.entries(kinds)) {
    for (let before = 64 - size; before <= 64; before++) {
      const value = size === 8 && kind !== "f64" ? 5n : 5;
      const bytes = new ByteWriter("big").bytes(new Uint8Array(before).fill(7))[kind](value).finish();
      const reader = new ByteReader(bytes, "big");
      assert.equal(hex(reader.bytes(before)), "07".repeat(before));
      assert.equal(reader[kind](), value, `${kind} after ${before} bytes`);
      assert.equal(reader.remaining, 0);
    }
  }
});

/** The rows of docs/raknet.md, section "bit-stream-vectors": name, bits, bytes, writing, reading and the value read. */
const ROWS = [
  ["bits 1, 0, 1", 3, "a0", (w) => [true, false, true].forEach((bit) => w.write(bool, bit)), (r) => [r.read(bool), r.read(bool), r.read(bool)], [true, false, true]],
  ["bit 1, u8 a5", 9, "d280", (w) => (w.write(bool, true), w.write(u8, 0xa5)), (r) => [r.read(bool), r.read(u8)], [true, 0xa5]],
  ["bit 1, u24 123456", 32, "80563412", (w) => (w.write(bool, true), w.write(u24, 0x123456)), (r) => [r.read(bool), r.read(u24)], [true, 0x123456]],
  ["f32 1.5", 32, "3fc00000", (w) => w.write(f32, 1.5), (r) => r.read(f32), 1.5],
  ["compressed u8 05", 5, "a8", (w) => w.writeCompressed(u8, 5), (r) => r.readCompressed(u8), 5],
  ["compressed u8 45", 9, "2280", (w) => w.writeCompressed(u8, 0x45), (r) => r.readCompressed(u8), 0x45],
  ["compressed u16 5", 17, "000280", (w) => w.writeCompressed(u16, 5), (r) => r.readCompressed(u16), 5],
  ["compressed u16 0500", 6, "d4", (w) => w.writeCompressed(u16, 0x500), (r) => r.readCompressed(u16), 0x500],
  ["compressed u32 5", 33, "0000000280", (w) => w.writeCompressed(u32, 5), (r) => r.readCompressed(u32), 5],
  ["compressed u32 12", 33, "0000000900", (w) => w.writeCompressed(u32, 0x12), (r) => r.readCompressed(u32), 0x12],
  ["compressed u32 05000000", 8, "f5", (w) => w.writeCompressed(u32, 0x5000000), (r) => r.readCompressed(u32), 0x5000000],
  ["compressed u32 12345678", 33, "091a2b3c00", (w) => w.writeCompressed(u32, 0x12345678), (r) => r.readCompressed(u32), 0x12345678],
  ["compressed i32 -1", 33, "7fffffff80", (w) => w.writeCompressed(i32, -1), (r) => r.readCompressed(i32), -1],
  ["compressed f32 1", 16, "ffff", (w) => w.writeCompressed(f32, 1), (r) => r.readCompressed(f32), 1],
  ["integer 7 of 0 to 10", 4, "70", (w) => w.ranged(7, 0, 10), (r) => r.ranged(0, 10), 7],
  ["integer 300 of 0 to 1000", 10, "2c40", (w) => w.ranged(300, 0, 1000), (r) => r.ranged(0, 1000), 300],
  ["integer 5 of 5 to 5", 0, "", (w) => w.ranged(5, 5, 5), (r) => r.ranged(5, 5), 5],
  ["delta of the u16 1 to 1", 1, "00", (w) => w.writeDelta(u16, 1, 1), (r) => r.readDelta(u16, 1), 1],
  ["delta of the u16 2 to 1", 17, "800100", (w) => w.writeDelta(u16, 2, 1), (r) => r.readDelta(u16, 1), 2],
  ["string hi", 32, "00026869", (w) => w.string(ascii("hi")), (r) => r.string(), ascii("hi")],
  ["aligned bytes abc with their number", 64, "0000000180616263", (w) => w.alignedBytesSafe(ascii("abc")), (r) => r.alignedBytesSafe(3), ascii("abc")],
];
/** The rows with lossy encodings, which are compared approximately. */
const NEARLY = [
  ["compressed f32 0.5", 16, "bfff", (w) => w.writeCompressed(f32, 0.5), (r) => r.readCompressed(f32), 0.5],
  ["compressed f64 0.5", 32, "c0000000", (w) => w.writeCompressed(f64, 0.5), (r) => r.readCompressed(f64), 0.5],
  ["float 2.5 of 0 to 10", 16, "3fff", (w) => w.float16(2.5, 0, 10), (r) => r.float16(0, 10), 2.5],
  ["vector (3, 0, 4)", 80, "40a00000cccc7fffe665", (w) => w.vector(VECTOR), (r) => r.vector(), VECTOR],
  ["unit vector (0.6, 0, 0.8)", 48, "cccc7fffe665", (w) => w.unitVector([0.6, 0, 0.8]), (r) => r.unitVector(), [0.6, 0, 0.8]],
  ["unit quaternion", 52, "47fff7fff7fff0", (w) => w.unitQuaternion(ROTATION), (r) => Object.values(r.unitQuaternion()), Object.values(ROTATION)],
];

for (const [rows, compare] of [[ROWS, (found, wanted) => assert.deepEqual(found, wanted)], [NEARLY, near]]) {
  for (const [name, count, bytes, write, read, value] of rows) {
    test(`bit stream: ${name}`, () => {
      const writer = new bitstream.BitStreamWriter();
      write(writer);
      assert.equal(writer.bits.position, count);
      assert.equal(hex(writer.finish()), bytes);
      const reader = new bitstream.BitStreamReader(fromHex(bytes), count);
      compare(read(reader), value);
      assert.equal(reader.remaining, 0);
      for (let short = 0; short < count; short++) {
        assert.throws(() => read(new bitstream.BitStreamReader(fromHex(bytes), short)), fails("truncated"), `${short} bits`);
      }
    });
  }
}

test("bit stream: values outside the range are refused", () => {
  const writer = new bitstream.BitStreamWriter();
  assert.throws(() => writer.write(u8, 256), fails("out-of-range"));
  assert.throws(() => writer.write(u8, 0.5), fails("out-of-range"));
  assert.throws(() => writer.ranged(11, 0, 10), fails("out-of-range"));
  assert.throws(() => writer.ranged(1, 2, 1), fails("out-of-range"));
  assert.throws(() => writer.vector([Infinity, 0, 0]), fails("out-of-range"));
  assert.throws(() => writer.string(new Uint8Array(65_536)), fails("too-many"));
  assert.throws(() => new bitstream.BitStreamReader(fromHex("0000000180616263")).alignedBytesSafe(2), fails("too-many"));
  assert.throws(() => new bitstream.BitStreamReader(fromHex("f0")).ranged(0, 10), fails("out-of-range"));
});

/** Rows copied from the tests of the Rust core: schema, value, bytes. */
const RABBIT = [
  [rabbit.tuple(rabbit.bits(5), rabbit.bits(7), rabbit.bits(2)), [15, 81, 1], "2f1a"],
  [rabbit.u32, 300, "b10400"],
  [rabbit.u16, 0, "0000"],
  [rabbit.u64, 0x123456789an, "c4b3a291d004"],
  [rabbit.u128, 0x0123456789abcdef0123n, "79563412f0debc9a381200"],
  [rabbit.i16, -1, "0200"],
  [rabbit.f64, Math.PI, "fb210940182d4454"],
];

for (const [schema, value, bytes] of RABBIT) {
  test(`Rabbit: ${bytes}`, () => {
    assert.equal(hex(rabbit.pack(schema, value)), bytes);
    assert.deepEqual(rabbit.unpack(schema, fromHex(bytes)), value);
  });
}

/** The schemas by their type names in the file recorded with the original implementation of Rabbit. */
const { bool: flag, nothing, variants } = rabbit;
const kinds = (count) => variants(Object.fromEntries(Array.from({ length: count }, (_, index) => [index, nothing])));
const TYPES = {
  "bool": flag,
  "String": rabbit.text(),
  "Vec<bool>": rabbit.list(flag),
  "Option<u32>": rabbit.optional(rabbit.u32),
  "Option<bool>": rabbit.optional(flag),
  "(bool,u32,f32,u8,i32)": rabbit.tuple(flag, rabbit.u32, rabbit.f32, rabbit.u8, rabbit.i32),
  ...Object.fromEntries(["u8", "u16", "u32", "u64", "u128", "i16", "i32", "i64", "f32", "f64"].map((name) => [name, rabbit[name]])),
  ...Object.fromEntries([2, 4, 5].map((count) => [`enum${count}`, kinds(count)])),
};

/** Returns the bits of a floating-point number as an integer. */
function float(bits, width) {
  const view = new DataView(new ArrayBuffer(8));
  view.setBigUint64(0, BigInt(`0x${bits}`) << BigInt(64 - width));
  return width === 32 ? view.getFloat32(0) : view.getFloat64(0);
}

/** Converts a value from the notation of the recorded file. */
function valueOf(type, value) {
  if (type.startsWith("(")) {
    return type.slice(1, -1).split(",").map((part, index) => valueOf(part, value[index]));
  }
  if (type.startsWith("Option")) {
    return value === null ? undefined : valueOf(type.slice(7, -1), value);
  }
  if (type.startsWith("enum")) {
    return { kind: String(value), value: undefined };
  }
  if (type.startsWith("f")) {
    return float(value, Number(type.slice(1)));
  }
  if (/^[ui](64|128)$/.test(type)) {
    return BigInt(value);
  }
  return /^[ui]/.test(type) ? Number(value) : value;
}

test("Rabbit: values encode to the bytes recorded with the original, and decode again", () => {
  const rows = JSON.parse(readFileSync(new URL("game-protocol.json", import.meta.url), "utf8")).filter(({ category }) => category === "rabbit");
  assert.ok(rows.length > 150);
  for (const { name, type, value, hex: bytes, bits: count } of rows) {
    if (type === "raw_bits") {
      // For more than 32 bits, the original writes 32; this implementation throws.
      if (value.some(([, width]) => width > 32)) {
        assert.throws(() => value.forEach(([number, width]) => new BitWriter("lsb").bits(number, width)), fails("out-of-range"));
        continue;
      }
      const writer = new BitWriter("lsb");
      value.forEach(([number, width]) => writer.bits(number, width));
      assert.deepEqual([hex(writer.finish()), writer.position], [bytes, count], name);
      continue;
    }
    const given = valueOf(type, value);
    // Only NaN itself is compared, because JavaScript does not preserve its bits.
    if (!Number.isNaN(given)) {
      assert.equal(hex(rabbit.pack(TYPES[type], given)), bytes, name);
    }
    assert.deepEqual(rabbit.unpack(TYPES[type], fromHex(bytes)), given, name);
  }
});

test("Rabbit: overlong numbers and padding are accepted", () => {
  assert.equal(rabbit.unpack(rabbit.u32, fromHex("150000")), 5);
  assert.equal(rabbit.unpack(rabbit.u64, fromHex("ffffffff0700000000")), 0xffff_ffffn << 32n);
  assert.equal(rabbit.unpack(rabbit.bool, fromHex("ffff")), true);
});

test("Rabbit: packed values unpack, and truncated bytes are refused", () => {
  const { bool: flag, list, nothing, optional, struct, text, tuple, variants } = rabbit;
  const schema = struct({
    id: rabbit.u32,
    name: text(20),
    at: tuple(rabbit.f32, rabbit.f64),
    friends: list(struct({ id: rabbit.i64, near: flag }), 4),
    team: optional(rabbit.u8),
    act: variants({ wait: nothing, throw: rabbit.i32, move: list(rabbit.i16) }),
  });
  const value = {
    id: 70_000,
    name: "snow ☃",
    at: [1.5, -Math.E],
    friends: [{ id: -(2n ** 63n), near: true }, { id: 5n, near: false }],
    team: undefined,
    act: { kind: "move", value: [-32_768, 0, 32_767] },
  };
  const bytes = rabbit.pack(schema, value);
  assert.deepEqual(rabbit.unpack(schema, bytes), value);
  for (let length = 0; length < bytes.length; length++) {
    assert.throws(() => rabbit.unpack(schema, bytes.subarray(0, length)), (error) => ["truncated", "too-many"].includes(error.code), `${length}`);
  }
});

test("Rabbit: counts above the remaining bytes or the limit, and other invalid values, are refused", () => {
  const many = Buffer.concat([rabbit.pack(rabbit.u32, 0xffff_ffff), Buffer.alloc(20)]);
  for (const schema of [rabbit.list(rabbit.u64), rabbit.text(), rabbit.list(rabbit.nothing)]) {
    assert.throws(() => rabbit.unpack(schema, many), fails("too-many"));
  }
  assert.throws(() => rabbit.pack(rabbit.list(rabbit.bool, 2), [true, true, true]), fails("too-many"));
  assert.throws(() => rabbit.unpack(rabbit.list(rabbit.bool, 2), rabbit.pack(rabbit.list(rabbit.bool), [true, true, true])), fails("too-many"));
  assert.throws(() => rabbit.pack(rabbit.text(2), "abc"), fails("too-many"));
  for (const [schema, value] of [[rabbit.bits(3), 8], [rabbit.u16, 65_536], [rabbit.i16, -32_769], [rabbit.u8, 0.5], [rabbit.u64, -1n]]) {
    assert.throws(() => rabbit.pack(schema, value), fails("out-of-range"), String(value));
  }
  for (const wrong of [[0x80], [0xc3], [0xc3, 0x28], [0xed, 0xa0, 0x80], [0xff]]) {
    const bytes = rabbit.pack(rabbit.list(rabbit.u8), wrong);
    assert.throws(() => rabbit.unpack(rabbit.text(), bytes), fails("bad-utf8"), String(wrong));
  }
  let deep = rabbit.bool;
  for (let level = 0; level < 17; level++) {
    deep = rabbit.list(deep);
  }
  assert.throws(() => rabbit.unpack(deep, Uint8Array.from({ length: 64 }, () => 0b0000_0100)), (error) => error instanceof CodecError);
  assert.throws(() => rabbit.unpack(rabbit.variants({ a: rabbit.nothing, b: rabbit.nothing, c: rabbit.nothing }), Uint8Array.of(3)), fails("out-of-range"));
});

test("arbitrary bytes are decoded or refused, in both encodings", () => {
  const random = numbers(7);
  const schema = rabbit.struct({ a: rabbit.list(rabbit.text()), b: rabbit.optional(rabbit.u128), c: rabbit.variants({ d: rabbit.i64, e: rabbit.f32 }) });
  for (let round = 0; round < 2_000; round++) {
    const bytes = Uint8Array.from({ length: random.next().value % 40 }, () => random.next().value >>> 24);
    for (const read of [
      () => rabbit.unpack(schema, bytes),
      () => {
        const reader = new bitstream.BitStreamReader(bytes);
        return [reader.readCompressed(u32), reader.string(), reader.alignedBytesSafe(9), reader.vector(), reader.ranged(-5, 9)];
      },
    ]) {
      try {
        read();
      } catch (error) {
        assert.ok(error instanceof CodecError, error.stack);
      }
    }
  }
});

test("bits of any width are read back at any position, in both orders", () => {
  const random = numbers(3);
  for (const order of ["lsb", "msb"]) {
    const writer = new BitWriter(order);
    const written = [];
    for (let index = 0; index < 500; index++) {
      const width = random.next().value % 33;
      const number = width === 0 ? 0 : random.next().value >>> (32 - width);
      writer.bits(number, width);
      written.push([number, width]);
    }
    writer.bytes(Uint8Array.of(1, 2, 3));
    writer.align();
    writer.bytes(Uint8Array.of(4, 5));
    const reader = new BitReader(writer.finish(), order);
    written.forEach(([number, width]) => assert.equal(reader.bits(width), number));
    assert.deepEqual(reader.bytes(3), Uint8Array.of(1, 2, 3));
    reader.align();
    assert.deepEqual(reader.bytes(2), Uint8Array.of(4, 5));
    assert.equal(reader.remaining, 0);
  }
});

test("byte readers read back every type in both byte orders, message ids are split off, and truncated input is refused", () => {
  for (const order of ["little", "big"]) {
    const bytes = new ByteWriter(order)
      .u8(255).i8(-128).u16(65_535).i16(-32_768).u32(0xffff_ffff).i32(-(2 ** 31)).u64(2n ** 64n - 1n).i64(-(2n ** 63n))
      .f32(1.5).f64(Math.PI).text("snow ☃").bytes(Uint8Array.of(1, 2)).finish();
    const reader = new ByteReader(bytes, order);
    const read = [reader.u8(), reader.i8(), reader.u16(), reader.i16(), reader.u32(), reader.i32(), reader.u64(), reader.i64(), reader.f32(), reader.f64(), reader.text()];
    assert.deepEqual(read, [255, -128, 65_535, -32_768, 0xffff_ffff, -(2 ** 31), 2n ** 64n - 1n, -(2n ** 63n), 1.5, Math.PI, "snow ☃"]);
    assert.deepEqual(reader.bytes(2), Uint8Array.of(1, 2));
    assert.throws(() => reader.u8(), fails("truncated"));
  }
  assert.equal(hex(new ByteWriter().u16(1).finish()), "0100");
  assert.equal(hex(new ByteWriter("big").u16(1).finish()), "0001");
  const { id, body } = splitId(withId(0x86, Uint8Array.of(7)));
  assert.deepEqual([id, body], [0x86, Uint8Array.of(7)]);
  assert.throws(() => splitId(new Uint8Array(0)), fails("truncated"));
  const cut = new ByteReader(Uint8Array.of(9, 0, 1));
  assert.throws(() => cut.text(), fails("truncated"));
  assert.equal(cut.position, 0);
});

test("aggregates match the example and the length encoding of the core", () => {
  // The example of the core's documentation.
  const messages = [withId(0xa0, ascii("one")), withId(0xa1, ascii("three"))];
  const bytes = aggregate.pack(0x9c, messages);
  assert.equal(hex(bytes), "9c0004a06f6e6506a17468726565");
  assert.deepEqual(aggregate.unpack(0x9c, bytes), messages);
  assert.deepEqual(aggregate.unpack(0x86, aggregate.pack(0x86, [])), []);
  for (const [length, form] of [[0x7f, "7f"], [0x80, "8001"], [0x3fff, "ff7f"], [0x4000, "808001"], [0x20_0000, "80808001"]]) {
    const long = new Uint8Array(length).fill(1);
    const packed = aggregate.pack(0x86, [long]);
    assert.equal(hex(packed.subarray(2, 2 + form.length / 2)), form);
    assert.ok(Buffer.from(aggregate.unpack(0x86, packed)[0]).equals(long));
  }
});

test("invalid aggregates are refused", () => {
  const rows = [
    ["", "truncated"],
    ["86", "truncated"],
    ["8600", undefined],
    ["8700", "out-of-range"],
    ["8601018000", "out-of-range"],
    ["860002bb", "truncated"],
    ["860080", "truncated"],
    ["860000", "out-of-range"],
    ["86008100bb", "out-of-range"],
    ["86008080808001", "out-of-range"],
    ["86000186", "out-of-range"],
  ];
  for (const [bytes, code] of rows) {
    const unpack = () => aggregate.unpack(0x86, fromHex(bytes));
    if (code === undefined) {
      assert.deepEqual(unpack(), []);
    } else {
      assert.throws(unpack, fails(code), bytes);
    }
  }
  for (const [id, message] of [[0x85, [1]], [0x100, [1]], [0x86, []], [0x86, [0x86]]]) {
    assert.throws(() => aggregate.pack(id, [Uint8Array.from(message)]), fails("out-of-range"));
  }
});
