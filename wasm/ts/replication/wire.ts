/**
 * The knowledge that both sides of a replication share: the classes of entities, the bytes of messages (docs/plugins/replication.md), and
 * the ticks that were received.
 */

import type { BitReader } from "../codec/bits.js";
import { BitWriter } from "../codec/bits.js";
import { CodecError } from "../codec/cursor.js";
import { RakwireError } from "../errors.js";
import { readInteger } from "../options.js";
import { fingerprint } from "../plugin/connection.js";

/** The first byte of every message to replicas. */
export const UPDATE_ID = 130;
/** The bytes of an update before its records. */
export const HEADER = 5;
/** The first bytes of a message with the fingerprint of the classes, and the bytes of that. */
const CLASSES = 0x8302;
const FINGERPRINT = 8;
/** The first two bytes of what replicas send. */
const ACKNOWLEDGEMENT = 0x8300;
const STATE = 0x8301;
const STATE_HEADER = 6;
/** The bits that say which entity it is. */
const NAME_BITS = 40;
/** The most bits that a message has beside the fields of a single record. */
export const OVERHEAD_BITS = /* @__PURE__ */ 8 * STATE_HEADER + 1 + 33 + 3 + NAME_BITS;
const MAX_ZEROS = 16;

const MAX_CLASSES = 256;
/** The most fields that a class can have. */
export const MAX_FIELDS = 32;
/** Objects have such names in the order of their numbers, whatever the order in which they were written. */
const WHOLE_NUMBER = /^\d+$/;

/** A number of a fixed width. What it means is the application's affair, which also chooses how exact it is. */
export interface Field {
  /** 1 to 32. */
  readonly bits: number;
  /**
   * The bits of the short form, fewer than `bits`: where the number has changed by less than half of what they hold, only so
   * many are sent. None by default.
   */
  readonly short?: number;
}

/**
 * The classes of entities by their names, and the fields of each. The server has the same in the same order; the names are this
 * peer's own, and are no whole numbers.
 */
export type EntityClasses = Readonly<Record<string, Readonly<Record<string, Field>>>>;

/** The names of classes. */
export type ClassName<C> = keyof C & string;
/** The names of the fields of a class. */
export type FieldName<C, N extends ClassName<C>> = keyof C[N] & string;
/** A class, as messages need it. */
export interface EntityClass {
  readonly name: string;
  readonly fields: readonly Required<Field>[];
  /** The place of each field by its name. */
  readonly places: ReadonlyMap<string, number>;
  /** The bits of all fields. */
  readonly bits: number;
}

/** The classes in their order. Each entity fits into a message of so many bytes. */
export function readClasses(classes: EntityClasses, maxBytes: number): readonly EntityClass[] {
  const all = entriesOf(classes).map(([name, fields]) => readClass(name, fields));
  if (all.length < 1 || all.length > MAX_CLASSES) {
    throw new RakwireError("bad-option", `there must be 1 to ${MAX_CLASSES} classes, not ${all.length}`);
  }
  // Every field with its two flags is longer than a whole one.
  const long = all.find(({ bits, fields }) => bits + 2 * fields.length + OVERHEAD_BITS > 8 * maxBytes);
  if (long !== undefined) {
    throw new RakwireError("bad-option", `an entity of the class ${long.name} does not fit into ${maxBytes} bytes`);
  }
  return all;
}

/** Names the classes, without their names: FNV-1a with 64 bits, over the number of fields of each and the bits of each field. */
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
    throw new RakwireError("bad-option", `the name ${numbered[0]} is a whole number, which would change the order`);
  }
  return entries;
}

/** The contents of a full record beside the fields. */
export interface Name {
  readonly generation: number;
  /** The place of its class among the classes. */
  readonly class: number;
  /** Counts how often the entity has had another owner. */
  readonly term: number;
}

/** How an entity is that this peer owns. */
export interface State extends Name {
  readonly index: number;
  readonly values: Uint32Array;
}

/** Ends the reading of a message that says nothing. */
export function check(isRight: boolean): void {
  if (!isRight) {
    throw new CodecError("out-of-range", "the message says nothing");
  }
}

/** Reads a number of 1 or more in Elias' gamma code. */
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

/** Reads the changes of a delta into the fields of an entity. */
export function readChanges(reader: BitReader, fields: readonly Required<Field>[], values: Uint32Array): void {
  const covered = readGamma(reader);
  check(covered <= fields.length);
  for (let place = 0; place < covered; place++) {
    const { bits, short } = fields[place] as Required<Field>;
    // The last one has no bit that says that it has changed.
    if (place === covered - 1 || reader.bit()) {
      const isShort = short > 0 && reader.bit();
      values[place] = isShort ? lengthen(values[place] as number, reader.bits(short), bits, short) : reader.bits(bits);
    }
  }
}

/** The number that has this short form and is nearest to what it was. */
function lengthen(was: number, low: number, bits: number, short: number): number {
  const unused = 32 - short;
  return truncate(was + (((low - was) << unused) >> unused), bits);
}

/** The part of a number that a field can hold. */
export function truncate(value: number, bits: number): number {
  return (value & (0xffff_ffff >>> (32 - bits))) >>> 0;
}

/** The message by which a client shows its classes. */
export function encodeClasses(fingerprint: bigint): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(2 + FINGERPRINT);
  const view = new DataView(bytes.buffer);
  view.setUint16(0, CLASSES);
  view.setBigUint64(2, fingerprint);
  return bytes;
}

/** The fingerprint in a message of the server that has no tick; nothing if it is none. */
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

/** A message with the first of these states, as many as fit into so many bytes; they are in the order of their indices. */
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

/** So many ticks are acknowledged at once. */
const WINDOW = 33;

/** The latest tick that was received, and which of the 32 before. */
export class Received {
  #latest = 0;
  /** Bit `n` stands for `n + 1` ticks before the latest. */
  #before = 0;

  /** 0 before the first one. */
  get latest(): number {
    return this.#latest;
  }

  get before(): number {
    return this.#before >>> 0;
  }

  /** Whether a tick is too old to be acknowledged. */
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

/** The bit that stands for so many ticks before the latest. */
function bit(ticks: number): number {
  return ticks < WINDOW ? 1 << (ticks - 1) : 0;
}
