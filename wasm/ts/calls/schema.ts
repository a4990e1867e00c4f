/**
 * Schemas of remote calls, which both peers share: names, types of values, and their fingerprints
 * (docs/plugins/calls.md#schemas); and the handlers that serve the calls of the peer.
 */

import type { BitStreamReader as Reader, BitStreamWriter as Writer } from "../codec/bitstream.js";
import { BitStreamReader, BitStreamWriter } from "../codec/bitstream.js";
import type { Schema } from "../codec/rabbit.js";
import { pack, unpack } from "../codec/rabbit.js";
import { RakwireError } from "../errors.js";
import { report } from "../events.js";
import { fingerprint } from "../plugin/connection.js";
import type { Connection } from "../types.js";
import { FunctionError, MAX_NAME, REASONS } from "./wire.js";

/** Encodes values as bytes and decodes them. Decoding throws if the bytes are invalid. */
export interface Encoding<T> {
  pack(value: T): Uint8Array;
  unpack(bytes: Uint8Array): T;
}

/**
 * The encoding of a value: a schema of `rabbit`, which peers in Rust understand, or another encoding that both peers
 * have.
 */
export type ValueSchema<T = any> = Schema<T> | Encoding<T>;

/** The argument and answer types of a function. */
export interface FunctionSchema {
  readonly arguments: ValueSchema;
  readonly answer: ValueSchema;
}

/** Functions and signals by name. A name has 1 to 64 bytes (UTF-8). */
export interface CallSchema {
  readonly functions?: Readonly<Record<string, FunctionSchema>>;
  /** The value of each signal. */
  readonly signals?: Readonly<Record<string, ValueSchema>>;
}

/** The type of the values of a schema. */
export type ValueOf<V> = V extends Schema<infer T> ? T : V extends Encoding<infer T> ? T : never;
/** The functions of a schema. */
export type FunctionsOf<S> = S extends { readonly functions: infer F } ? F : {};
/** The signals of a schema. */
export type SignalsOf<S> = S extends { readonly signals: infer G } ? G : {};
/** The names of the functions of a schema. */
export type FunctionName<S> = keyof FunctionsOf<S> & string;
/** The names of the signals of a schema. */
export type SignalName<S> = keyof SignalsOf<S> & string;
/** The arguments of a function. */
export type Arguments<S, N extends FunctionName<S>> = FunctionsOf<S>[N] extends { readonly arguments: infer V } ? ValueOf<V> : never;
/** The answer of a function. */
export type Answer<S, N extends FunctionName<S>> = FunctionsOf<S>[N] extends { readonly answer: infer V } ? ValueOf<V> : never;
/** The value of a signal. */
export type SignalValue<S, N extends SignalName<S>> = ValueOf<SignalsOf<S>[N]>;

/** An encoding by RakNet's bit stream: `write` and `read` handle the same items in the same order. */
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

/** Converts both kinds of schema to an encoding. */
export function encodingOf(schema: ValueSchema): Encoding<unknown> {
  return "pack" in schema ? schema : { pack: (value) => pack(schema, value), unpack: (bytes) => unpack(schema, bytes) };
}

/** Reads the entries of a record and checks their names. */
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

const LENGTH = 8;
const HALF = 4;

/**
 * The fingerprint appended to the arguments of a function, or of a signal if there is no `answer`; `undefined` if a
 * type has no form.
 */
export function trailerOf(name: string, value: ValueSchema, answer?: ValueSchema): Uint8Array<ArrayBuffer> | undefined {
  const [form, end] = [formOf(value), answer === undefined ? "!" : formOf(answer)];
  if (form === undefined || end === undefined) {
    return undefined;
  }
  const text = answer === undefined ? form + end : `${form}=${end}`;
  return withCheck(name, low(fingerprint(Array.from(text, (char) => char.charCodeAt(0)))));
}

/** Removes the fingerprint from the arguments; `undefined` if the peer has another schema. */
function withoutTrailer(name: string, own: Uint8Array, payload: Uint8Array): Uint8Array | undefined {
  const trailer = payload.subarray(-LENGTH);
  if (payload.length < LENGTH || !areEqual(trailer, withCheck(name, trailer.subarray(0, HALF)))) {
    return payload;
  }
  return areEqual(trailer, own) ? payload.subarray(0, -LENGTH) : undefined;
}

function formOf(schema: ValueSchema): string | undefined {
  return "form" in schema ? schema.form : undefined;
}

function withCheck(name: string, print: Uint8Array): Uint8Array<ArrayBuffer> {
  return Uint8Array.of(...print, ...low(fingerprint([...print, ...new TextEncoder().encode(name)])));
}

/** The low four bytes of a fingerprint, big-endian. */
function low(print: bigint): Uint8Array {
  const bytes = new Uint8Array(HALF);
  new DataView(bytes.buffer).setUint32(0, Number(BigInt.asUintN(32, print)));
  return bytes;
}

const areEqual = (a: Uint8Array, b: Uint8Array): boolean => a.every((byte, at) => byte === b[at]);

/** The caller of a handler. */
export interface Caller {
  readonly connection: Connection;
  /** Aborted when the connection has ended and an answer is no longer needed. */
  readonly signal: AbortSignal;
}

/** Serves a function or a signal. */
export interface Handler<T, R> {
  /** Returns true if the peer may call this. Called before the arguments are decoded. */
  isAllowed(caller: Caller): boolean;
  /**
   * Handles the call and returns the answer. A {@link FunctionError} reports the reason to the caller. Any other error
   * is reported locally and reaches the caller as failure 0.
   */
  handle(value: T, caller: Caller): R | Promise<R>;
}

/** A reason to refuse a call. */
export class Refusal {
  readonly reason: number;
  readonly code: number;

  constructor(reason: number, code = 0) {
    this.reason = reason;
    this.code = code;
  }
}

/** A handler with the encodings of its arguments and answer. */
export class Registered {
  readonly order: number;
  readonly name: string;
  /** The fingerprint that callers append to their arguments. */
  readonly #trailer: Uint8Array | undefined;
  readonly #handler: Handler<unknown, unknown>;
  readonly #arguments: Encoding<unknown>;
  readonly #answer: Encoding<unknown> | undefined;

  /** A function, or the handler of a signal if there is no `answer`. */
  constructor(name: string, schema: Pick<FunctionSchema, "arguments"> & { answer?: ValueSchema }, handler: Handler<any, any>, order = 0) {
    this.order = order;
    this.name = name;
    this.#trailer = trailerOf(name, schema.arguments, schema.answer);
    this.#handler = handler;
    this.#arguments = encodingOf(schema.arguments);
    this.#answer = schema.answer && encodingOf(schema.answer);
  }

  /** Runs the handler and passes on the encoded answer, which is empty for a signal. Synchronous if the handler is. */
  run(payload: Uint8Array, caller: Caller, done: (result: Uint8Array | Refusal) => void): void {
    const result = this.#begin(payload, caller);
    if (isPromise(result)) {
      void result.then((answer) => this.#pack(answer), failed).then(done, report);
    } else {
      done(result instanceof Refusal ? result : this.#pack(result));
    }
  }

  #begin(payload: Uint8Array, caller: Caller): unknown {
    if (!this.#isAllowed(caller)) {
      return new Refusal(REASONS.forbidden);
    }
    const bytes = this.#trailer === undefined ? payload : withoutTrailer(this.name, this.#trailer, payload);
    if (bytes === undefined) {
      return new Refusal(REASONS.otherSchema);
    }
    let value: unknown;
    try {
      value = this.#arguments.unpack(bytes);
    } catch {
      return new Refusal(REASONS.badArguments);
    }
    try {
      return this.#handler.handle(value, caller);
    } catch (error) {
      return failed(error);
    }
  }

  #isAllowed(caller: Caller): boolean {
    try {
      return this.#handler.isAllowed(caller) === true;
    } catch (error) {
      report(error);
      return false;
    }
  }

  #pack(answer: unknown): Uint8Array | Refusal {
    try {
      return this.#answer?.pack(answer) ?? new Uint8Array(0);
    } catch (error) {
      report(error);
      return new Refusal(REASONS.answerTooLong);
    }
  }
}

function isPromise(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as Partial<PromiseLike<unknown>> | null | undefined)?.then === "function";
}

/** Converts an error of a handler to a refusal for the caller. */
function failed(error: unknown): Refusal {
  if (error instanceof FunctionError) {
    return new Refusal(REASONS.failed, error.failure);
  }
  report(error);
  return new Refusal(REASONS.failed);
}
