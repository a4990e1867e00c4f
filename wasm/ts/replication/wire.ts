/** The entity classes, the wire format (docs/plugins/replication.md) and the set of received ticks. */

import type { BitReader } from "../codec/cursor.js";
import { BitWriter, CodecError } from "../codec/cursor.js";
import { RakwireError } from "../errors.js";
import { readInteger } from "../options.js";
import { fingerprint } from "../plugin/connection.js";

/** The first byte of every message from the server. */
export const UPDATE_ID = 130;
/** The length of an update before its records, in bytes. */
export const HEADER = 5;
/** The first two bytes of a message with the class fingerprint. */
const CLASSES = 0x8302;
/** The length of the class fingerprint in bytes. */
const FINGERPRINT = 8;
/** The first two bytes of an acknowledgement. */
const ACKNOWLEDGEMENT = 0x8300;
const STATE = 0x8301;
const STATE_HEADER = 6;
/** The number of bits that identify an entity. */
const NAME_BITS = 40;
/** The maximum size in bits of a message with a single record, without the fields of the record. */
export const OVERHEAD_BITS = /* @__PURE__ */ 8 * STATE_HEADER + 1 + 33 + 3 + NAME_BITS;
const MAX_ZEROS = 16;

const MAX_CLASSES = 256;
/** The maximum number of fields of a class. */
export const MAX_FIELDS = 32;
/** Matches property names that JavaScript orders numerically, regardless of the order in the source. */
const WHOLE_NUMBER = /^\d+$/;

/** An unsigned integer of a fixed width. The application defines its meaning and precision. */
export interface Field {
  /** The width in bits, 1 to 32. */
  readonly bits: number;
  /**
   * The width of the short form in bits, less than `bits`. It is sent if the number changed by less than half of the
   * short form's range. Default: no short form.
   */
  readonly short?: number;
}

/**
 * Entity classes by name, and their fields by name. The server must have the same classes and fields in the same order.
 * Names are not sent. They must not be integers, because JavaScript reorders integer keys.
 */
export type EntityClasses = Readonly<Record<string, Readonly<Record<string, Field>>>>;

/** The name of a class. */
export type ClassName<C> = keyof C & string;
/** The name of a field of a class. */
export type FieldName<C, N extends ClassName<C>> = keyof C[N] & string;
/** A class in the form used for encoding. */
export interface EntityClass {
  readonly name: string;
  readonly fields: readonly Required<Field>[];
  /** The position of each field, by name. */
  readonly places: ReadonlyMap<string, number>;
  /** The total width of all fields in bits. */
  readonly bits: number;
}

/** Checks classes and returns them in order. Every entity must fit into a message of `maxBytes`. */
export function readClasses(classes: EntityClasses, maxBytes: number): readonly EntityClass[] {
  const all = entriesOf(classes).map(([name, fields]) => readClass(name, fields));
  if (all.length < 1 || all.length > MAX_CLASSES) {
    throw new RakwireError("bad-option", `there must be 1 to ${MAX_CLASSES} classes, not ${all.length}`);
  }
  // The longest possible record is a full record with two flags per field.
  const long = all.find(({ bits, fields }) => bits + 2 * fields.length + OVERHEAD_BITS > 8 * maxBytes);
  if (long !== undefined) {
    throw new RakwireError("bad-option", `an entity of the class ${long.name} does not fit into ${maxBytes} bytes`);
  }
  return all;
}

/**
 * Returns the fingerprint of the classes, which ignores names: 64-bit FNV-1a over the number of fields of each class
 * and the width of each field.
 */
export function fingerprintOf(classes: readonly EntityClass[]): bigint {
  return fingerprint(classes.flatMap(({ fields }) => [fields.length, ...fields.flatMap(({ bits, short }) => [bits, short])]));
}

function readClass(name: string, described: Readonly<Record<string, Field>>): EntityClass {
  const entries = entriesOf(described);
  if (entries.length > MAX_FIELDS) {
    throw new RakwireError("bad-option", `the class ${name} has more than ${MAX_FIELDS} fields`);
  }
  const fields = entries.map(([field, { bits, short = 0 }]) => {
    readInteger(`the bits of ${name}.${field}`, bits, 1, 32);
    return { bits, short: readInteger(`the short form of ${name}.${field}`, short, 0, bits - 1) };
  });
  const places = new Map(entries.map(([field], place) => [field, place]));
  return { name, fields, places, bits: fields.reduce((sum, { bits }) => sum + bits, 0) };
}

function entriesOf<T>(record: Readonly<Record<string, T>>): [string, T][] {
  const entries = Object.entries(record);
  const numbered = entries.find(([name]) => WHOLE_NUMBER.test(name));
  if (numbered !== undefined) {
    throw new RakwireError("bad-option", `the name ${numbered[0]} is a whole number, which would change the order; choose another`);
  }
  return entries;
}

/** The contents of a full record except the fields. */
export interface Name {
  readonly generation: number;
  /** The index of its class. */
  readonly class: number;
  /** The number of ownership changes so far. */
  readonly term: number;
}

/** An entity that this peer owns. */
export interface State extends Name {
  readonly index: number;
  readonly values: Uint32Array;
}

/** Throws a `CodecError` if a condition of a valid message is false. */
export function check(isRight: boolean): void {
  if (!isRight) {
    throw new CodecError("out-of-range", "a replication message is invalid");
  }
}

/** Reads a number of 1 or more in Elias gamma coding. */
export function readGamma(reader: BitReader): number {
  let zeros = 0;
  while (!reader.bit()) {
    zeros += 1;
    check(zeros <= MAX_ZEROS);
  }
  return (1 << zeros) | reader.bits(zeros);
}

function gammaBits(number: number): number {
  return 63 - 2 * Math.clz32(number);
}

function writeGamma(writer: BitWriter, number: number): void {
  const digits = 32 - Math.clz32(number);
  writer.bits(0, digits - 1);
  writer.bits(number, digits);
}

export function readName(reader: BitReader): Name {
  return { generation: reader.bits(16), class: reader.bits(8), term: reader.bits(16) };
}

/** Reads all fields of an entity. */
export function readValues(reader: BitReader, fields: readonly Field[], values: Uint32Array): void {
  fields.forEach(({ bits }, place) => (values[place] = reader.bits(bits)));
}

/** Reads the changed fields of a delta. */
export function readChanges(reader: BitReader, fields: readonly Required<Field>[], values: Uint32Array): void {
  const covered = readGamma(reader);
  check(covered <= fields.length);
  for (let place = 0; place < covered; place++) {
    const { bits, short } = fields[place] as Required<Field>;
    // The last covered field has always changed, so it has no flag.
    if (place === covered - 1 || reader.bit()) {
      const isShort = short > 0 && reader.bit();
      values[place] = isShort ? lengthen(values[place] as number, reader.bits(short), bits, short) : reader.bits(bits);
    }
  }
}

/** Returns the number with this short form that is nearest to the previous value. */
function lengthen(was: number, low: number, bits: number, short: number): number {
  const unused = 32 - short;
  return truncate(was + (((low - was) << unused) >> unused), bits);
}

/** Truncates a number to the width of a field. */
export function truncate(value: number, bits: number): number {
  return (value & (0xffff_ffff >>> (32 - bits))) >>> 0;
}

/** Encodes the fingerprint of the classes, as a client sends it. */
export function encodeClasses(fingerprint: bigint): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(2 + FINGERPRINT);
  const view = new DataView(bytes.buffer);
  view.setUint16(0, CLASSES);
  view.setBigUint64(2, fingerprint);
  return bytes;
}

/** Reads the fingerprint of the classes from a server message, which then has no tick; `undefined` if it is invalid. */
export function readFingerprint(bytes: Uint8Array): bigint | undefined {
  const { buffer, byteOffset, length } = bytes;
  return length === HEADER + FINGERPRINT ? new DataView(buffer, byteOffset, length).getBigUint64(HEADER) : undefined;
}

export function encodeAcknowledgement({ latest, before }: Received): Uint8Array<ArrayBuffer> {
  const writer = new BitWriter("msb");
  writer.bits(ACKNOWLEDGEMENT, 16);
  writer.bits(latest, 32);
  writer.bits(before, 32);
  return writer.finish();
}

/** Encodes as many states as fit into `maxBytes`, in the order of their indices. */
export function encodeStates(
  number: number,
  states: readonly State[],
  classes: readonly EntityClass[],
  maxBytes: number,
): { readonly bytes: Uint8Array<ArrayBuffer>; readonly count: number } {
  const count = countOfFitting(states, classes, 8 * (maxBytes - STATE_HEADER));
  const writer = new BitWriter("msb");
  writer.bits(STATE, 16);
  writer.bits(number, 32);
  writeGamma(writer, count);
  let next = 0;
  for (const state of states.slice(0, count)) {
    writeGamma(writer, state.index + 1 - next);
    next = state.index + 1;
    writer.bits(state.generation, 16);
    writer.bits(state.class, 8);
    writer.bits(state.term, 16);
    (classes[state.class] as EntityClass).fields.forEach(({ bits }, place) => writer.bits(state.values[place] as number, bits));
  }
  return { bytes: writer.finish(), count };
}

function countOfFitting(states: readonly State[], classes: readonly EntityClass[], room: number): number {
  let [bits, count, next] = [0, 0, 0];
  for (const state of states) {
    bits += gammaBits(state.index + 1 - next) + NAME_BITS + (classes[state.class] as EntityClass).bits;
    if (bits + gammaBits(count + 1) > room) {
      break;
    }
    [count, next] = [count + 1, state.index + 1];
  }
  return count;
}

/** The number of ticks that an acknowledgement covers: the latest received tick and the 32 before it. */
const WINDOW = 33;

/** The latest received tick, and a bit for each of the 32 ticks before it. */
export class Received {
  #latest = 0;
  /** Bit `n` is set if the tick `n + 1` before the latest was received. */
  #before = 0;

  /** The latest tick; 0 if none was received. */
  get latest(): number {
    return this.#latest;
  }

  get before(): number {
    return this.#before >>> 0;
  }

  /** Returns true if a tick is too old to be acknowledged. */
  isTooOld(tick: number): boolean {
    return this.#latest - tick >= WINDOW;
  }

  /** Adds a tick that is not too old. */
  add(tick: number): void {
    const later = tick - this.#latest;
    if (later < 0) {
      this.#before |= bit(-later);
    } else if (later > 0) {
      const moved = later < 32 ? this.#before << later : 0;
      this.#before = this.#latest === 0 ? 0 : moved | bit(later);
      this.#latest = tick;
    }
  }
}

/** Returns the bit of the tick `ticks` before the latest. */
function bit(ticks: number): number {
  return ticks < WINDOW ? 1 << (ticks - 1) : 0;
}
