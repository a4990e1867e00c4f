/** What both peers know of their functions and signals: the names, and the types of what is passed. */

import type { BitStreamReader as Reader, BitStreamWriter as Writer } from "../codec/bitstream.js";
import { BitStreamReader, BitStreamWriter } from "../codec/bitstream.js";
import { pack, unpack } from "../codec/rabbit.js";
import type { Schema } from "../codec/rabbit.js";
import { RakwireError } from "../errors.js";
import { MAX_NAME } from "./wire.js";

/** Makes bytes of values and values of bytes, and throws for what is none. */
export interface Encoding<T> {
  pack(value: T): Uint8Array;
  unpack(bytes: Uint8Array): T;
}

/** How a value is passed: by a schema of `rabbit`, as to peers in Rust, or by another encoding that both peers have. */
export type ValueSchema<T = any> = Schema<T> | Encoding<T>;

/** A function: what it is called with, and what it answers. */
export interface FunctionSchema {
  readonly arguments: ValueSchema;
  readonly answer: ValueSchema;
}

/** Functions and signals by their names, which have 1 to 64 bytes (UTF-8). */
export interface CallSchema {
  readonly functions?: Readonly<Record<string, FunctionSchema>>;
  /** What each signal is given with. */
  readonly signals?: Readonly<Record<string, ValueSchema>>;
}

/** The values of a schema. */
export type ValueOf<V> = V extends Schema<infer T> ? T : V extends Encoding<infer T> ? T : never;
/** The functions of a schema. */
export type FunctionsOf<S> = S extends { readonly functions: infer F } ? F : {};
/** The signals of a schema. */
export type SignalsOf<S> = S extends { readonly signals: infer G } ? G : {};
/** The names of the functions of a schema. */
export type FunctionName<S> = keyof FunctionsOf<S> & string;
/** The names of the signals of a schema. */
export type SignalName<S> = keyof SignalsOf<S> & string;
/** What a function is called with. */
export type Arguments<S, N extends FunctionName<S>> = FunctionsOf<S>[N] extends { readonly arguments: infer V } ? ValueOf<V> : never;
/** What a function answers. */
export type Answer<S, N extends FunctionName<S>> = FunctionsOf<S>[N] extends { readonly answer: infer V } ? ValueOf<V> : never;
/** What a signal is given with. */
export type SignalValue<S, N extends SignalName<S>> = ValueOf<SignalsOf<S>[N]>;

/** An encoding by a bit stream of RakNet: `write` and `read` do the same in the same order. */
export function bitStream<T>(write: (writer: Writer, value: T) => void, read: (reader: Reader) => T): Encoding<T> {
  return {
    pack(value) {
      const writer = new BitStreamWriter();
      write(writer, value);
      return writer.finish();
    },
    unpack: (bytes) => read(new BitStreamReader(bytes)),
  };
}

/** The same encoding, whichever way it was written down. */
export function encodingOf(schema: ValueSchema): Encoding<unknown> {
  return "pack" in schema ? schema : { pack: (value) => pack(schema, value), unpack: (bytes) => unpack(schema, bytes) };
}

/** What a record has, by names that are some. */
export function readNames<T>(record: Readonly<Record<string, T>> = {}): Map<string, T> {
  const entries = Object.entries(record);
  for (const [name] of entries) {
    const { length } = new TextEncoder().encode(name);
    if (length < 1 || length > MAX_NAME || name.includes("\ufffd")) {
      throw new RakwireError("bad-option", `a name has 1 to ${MAX_NAME} bytes: ${JSON.stringify(name)}`);
    }
  }
  return new Map(entries);
}
