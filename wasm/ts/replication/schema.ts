/** What both sides know of entities: their classes, and the fields of each. */

import { RakwireError } from "../errors.js";
import { readInteger } from "../options.js";
import { fingerprint } from "../plugin/fingerprint.js";
import type { Replica } from "./replica.js";
import { OVERHEAD_BITS } from "./wire.js";

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
/** An entity of any of these classes. Its `class` tells which fields it has. */
export type ReplicaOf<C, H = unknown, N extends ClassName<C> = ClassName<C>> =
  N extends ClassName<C> ? Replica<N, FieldName<C, N>, H> : never;

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
