/**
 * The parts of remote calls that do not depend on a connection (docs/plugins/calls.md): the messages and errors, the
 * schemas that both peers share, with their fingerprints, and the handlers that serve the calls of the peer.
 */

import type { BitStreamReader as Reader, BitStreamWriter as Writer } from "../codec/bitstream.js";
import { BitStreamReader, BitStreamWriter } from "../codec/bitstream.js";
import { ByteReader, ByteWriter } from "../codec/cursor.js";
import type { Schema } from "../codec/rabbit.js";
import { pack, unpack } from "../codec/rabbit.js";
import type { ErrorCode } from "../errors.js";
import { RakwireError } from "../errors.js";
import { report } from "../events.js";
import { fingerprint } from "../plugin/connection.js";
import type { Connection } from "../types.js";

/** The first byte of every message. */
export const CALLS_ID = 127;
/** The maximum length of the name of a function or signal in bytes (UTF-8). */
export const MAX_NAME = 64;

const CALL = 0;
const ANSWER = 1;
const REFUSAL = 2;
const SIGNAL = 3;

/** The reasons why a peer refuses a call. */
export const REASONS = { unknown: 0, forbidden: 1, badArguments: 2, answerTooLong: 3, failed: 4, busy: 5, answerDropped: 6, otherSchema: 7 } as const;

/** A message. `payload` holds the arguments or the answer. */
export type CallMessage =
  | { readonly kind: "call"; readonly number: number; readonly name: string; readonly payload: Uint8Array }
  | { readonly kind: "answer"; readonly number: number; readonly payload: Uint8Array }
  | { readonly kind: "refusal"; readonly number: number; readonly reason: number; readonly code: number }
  | { readonly kind: "signal"; readonly name: string; readonly payload: Uint8Array };

/** Encodes a message. Its name must be valid. */
export function encodeCall(message: CallMessage): Uint8Array<ArrayBuffer> {
  const writer = new ByteWriter("big").u8(CALLS_ID);
  switch (message.kind) {
    case "call":
      return putName(writer.u8(CALL).u32(message.number), message.name).bytes(message.payload).finish();
    case "answer":
      return writer.u8(ANSWER).u32(message.number).bytes(message.payload).finish();
    case "refusal":
      return writer.u8(REFUSAL).u32(message.number).u8(message.reason).u8(message.code).finish();
    case "signal":
      return putName(writer.u8(SIGNAL), message.name).bytes(message.payload).finish();
  }
}

/** Decodes a message; `undefined` if the bytes are invalid. */
export function decodeCall(bytes: Uint8Array): CallMessage | undefined {
  try {
    return read(new ByteReader(bytes, "big"));
  } catch {
    return undefined;
  }
}

function read(reader: ByteReader): CallMessage | undefined {
  if (reader.u8() !== CALLS_ID) {
    return undefined;
  }
  const kind = reader.u8();
  if (kind === SIGNAL) {
    return { kind: "signal", name: takeName(reader), payload: rest(reader) };
  }
  const number = reader.u32();
  switch (kind) {
    case CALL:
      return { kind: "call", number, name: takeName(reader), payload: rest(reader) };
    case ANSWER:
      return { kind: "answer", number, payload: rest(reader) };
    case REFUSAL: {
      const reason = reader.u8();
      const code = reader.u8();
      return { kind: "refusal", number, reason, code: reason === REASONS.failed ? code : 0 };
    }
    default:
      return undefined;
  }
}

const rest = (reader: ByteReader): Uint8Array => reader.bytes(reader.remaining);

function putName(writer: ByteWriter, name: string): ByteWriter {
  const bytes = new TextEncoder().encode(name);
  return writer.u8(bytes.length).bytes(bytes);
}

function takeName(reader: ByteReader): string {
  const length = reader.u8();
  if (length > MAX_NAME) {
    throw new RangeError("a name is too long");
  }
  // Invalid UTF-8 decodes to a name with U+FFFD, which is never registered.
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(reader.bytes(length));
}

const MAX_FAILURE = 255;

/** Thrown by a function to fail with a code of its choice. The caller receives the code. */
export class FunctionError extends RakwireError {
  /** The failure code, 0 to 255. */
  readonly failure: number;

  constructor(failure: number) {
    super("function-failed", `the function failed with code ${failure}`);
    if (!Number.isInteger(failure) || failure < 0 || failure > MAX_FAILURE) {
      throw new RakwireError("bad-option", `the code of a FunctionError must be 0 to ${MAX_FAILURE}, not ${String(failure)}`);
    }
    this.failure = failure;
  }
}

const REFUSALS: Readonly<Record<number, readonly [ErrorCode, string]>> = {
  [REASONS.unknown]: ["unknown-function", "the peer has registered no function with this name"],
  [REASONS.forbidden]: ["forbidden", "the peer does not allow this call"],
  [REASONS.badArguments]: ["bad-arguments", "the peer cannot decode the arguments; run the same version at both peers"],
  [REASONS.answerTooLong]: ["answer-too-long", "the answer is longer than maxBytes of the peer; raise maxBytes there"],
  [REASONS.busy]: ["busy", "the peer is already running maxCalls calls; try again later"],
  [REASONS.answerDropped]: ["refused", "the function has run, but the peer dropped its answer because its send memory was full"],
  [REASONS.otherSchema]: ["schema-mismatch", "the peer has other argument or answer types for this function; run the same version at both peers"],
};

/** Converts a refusal from the peer to an error for the caller. */
export function refusalError(reason: number, code: number): RakwireError {
  if (reason === REASONS.failed) {
    return new FunctionError(code);
  }
  const [errorCode, text] = REFUSALS[reason] ?? ["refused", `the peer refused the call for the reason ${reason}, which this version does not know; update rakwire`];
  return new RakwireError(errorCode, text);
}

/** Encodes values as bytes and decodes them. Decoding throws on invalid bytes. */
export interface Encoding<T> {
  pack(value: T): Uint8Array;
  unpack(bytes: Uint8Array): T;
}

/**
 * The encoding of a value: a `rabbit` schema, which Rust peers can decode, or any other encoding that both peers
 * implement.
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
  /** The value type of each signal. */
  readonly signals?: Readonly<Record<string, ValueSchema>>;
}

/** The value type of a schema. */
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

/** Builds an encoding from RakNet's bit stream. `write` and `read` must handle the same items in the same order. */
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

/** Converts either kind of schema to an encoding. */
export function encodingOf(schema: ValueSchema): Encoding<unknown> {
  return "pack" in schema ? schema : { pack: (value) => pack(schema, value), unpack: (bytes) => unpack(schema, bytes) };
}

/** Reads the entries of a record and checks their names. */
export function readNames<T>(record: Readonly<Record<string, T>> = {}): Map<string, T> {
  const entries = Object.entries(record);
  for (const [name] of entries) {
    const { length } = new TextEncoder().encode(name);
    if (length < 1 || length > MAX_NAME || name.includes("\ufffd")) {
      throw new RakwireError("bad-option", `the name ${JSON.stringify(name)} of a function or signal must have 1 to ${MAX_NAME} bytes`);
    }
  }
  return new Map(entries);
}

const LENGTH = 8;
const HALF = 4;

/**
 * Returns the fingerprint appended to the arguments of a function, or to the value of a signal if there is no `answer`.
 * Returns `undefined` if one of the encodings has no `form`.
 */
export function trailerOf(name: string, value: ValueSchema, answer?: ValueSchema): Uint8Array<ArrayBuffer> | undefined {
  const [form, end] = [formOf(value), answer === undefined ? "!" : formOf(answer)];
  if (form === undefined || end === undefined) {
    return undefined;
  }
  const text = answer === undefined ? form + end : `${form}=${end}`;
  return withCheck(name, low(fingerprint(Array.from(text, (char) => char.charCodeAt(0)))));
}

/** Removes the fingerprint from the arguments. Returns `undefined` if the peer has another schema. */
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

/** Returns the low four bytes of a fingerprint, big-endian. */
function low(print: bigint): Uint8Array {
  const bytes = new Uint8Array(HALF);
  new DataView(bytes.buffer).setUint32(0, Number(BigInt.asUintN(32, print)));
  return bytes;
}

const areEqual = (a: Uint8Array, b: Uint8Array): boolean => a.every((byte, at) => byte === b[at]);

/** The peer that called a handler. */
export interface Caller {
  readonly connection: Connection;
  /** Aborted when the connection closes, after which no answer can be sent. */
  readonly signal: AbortSignal;
}

/** A handler of a function or signal. */
export interface Handler<T, R> {
  /** Returns true if the caller may use this function or signal. Called before the arguments are decoded. */
  isAllowed(caller: Caller): boolean;
  /**
   * Handles the call and returns the answer. Throw a {@link FunctionError} to send the caller a code. Any other error
   * is reported locally, and the caller receives failure 0.
   */
  handle(value: T, caller: Caller): R | Promise<R>;
}

/** The reason why a call is refused. */
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

  /** Creates a function handler, or a signal handler if there is no `answer`. */
  constructor(name: string, schema: Pick<FunctionSchema, "arguments"> & { answer?: ValueSchema }, handler: Handler<any, any>, order = 0) {
    this.order = order;
    this.name = name;
    this.#trailer = trailerOf(name, schema.arguments, schema.answer);
    this.#handler = handler;
    this.#arguments = encodingOf(schema.arguments);
    this.#answer = schema.answer && encodingOf(schema.answer);
  }

  /**
   * Runs the handler and passes the encoded answer to `done`; the answer of a signal is empty. If the handler is
   * synchronous, so is the call of `done`.
   */
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

/** Converts an exception of a handler to a refusal for the caller. */
function failed(error: unknown): Refusal {
  if (error instanceof FunctionError) {
    return new Refusal(REASONS.failed, error.failure);
  }
  report(error);
  return new Refusal(REASONS.failed);
}
