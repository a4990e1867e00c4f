/** The wire format of remote calls (docs/plugins/calls.md), and the errors of calls without an answer. */

import { ByteReader, ByteWriter } from "../codec/cursor.js";
import type { ErrorCode } from "../errors.js";
import { RakwireError } from "../errors.js";

/** The first byte of every message. */
export const CALLS_ID = 127;
/** The longest name of a function or signal, in bytes. */
export const MAX_NAME = 64;

const CALL = 0;
const ANSWER = 1;
const REFUSAL = 2;
const SIGNAL = 3;

/** The reasons of the peer to refuse a call. */
export const REASONS = { unknown: 0, forbidden: 1, badArguments: 2, answerTooLong: 3, failed: 4, busy: 5, answerDropped: 6, otherSchema: 7 } as const;

/** A message; `payload` holds the arguments or the answer. */
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

/** Thrown by a function that fails, with its own code, and received by the caller. */
export class FunctionError extends RakwireError {
  /** The failure code, 0 to 255. */
  readonly failure: number;

  constructor(failure: number) {
    super("function-failed", `the function failed with code ${failure}`);
    if (!Number.isInteger(failure) || failure < 0 || failure > MAX_FAILURE) {
      throw new RakwireError("bad-option", `the code of a failure must be 0 to ${MAX_FAILURE}, not ${String(failure)}`);
    }
    this.failure = failure;
  }
}

const REFUSALS: Readonly<Record<number, readonly [ErrorCode, string]>> = {
  [REASONS.unknown]: ["unknown-function", "the remote peer has no function of this name"],
  [REASONS.forbidden]: ["forbidden", "this peer is not allowed to call the function"],
  [REASONS.badArguments]: ["bad-arguments", "the arguments are not those of the function"],
  [REASONS.answerTooLong]: ["answer-too-long", "the answer does not fit into a message"],
  [REASONS.busy]: ["busy", "the remote peer has too many calls to answer; retry later"],
  [REASONS.answerDropped]: ["refused", "the function has run, but its answer was dropped for lack of room"],
  [REASONS.otherSchema]: ["other-schema", "the remote peer registered this function with other argument or answer types; run the same version on both"],
};

/** Converts a refusal of the peer to the error of the caller. */
export function refusalError(reason: number, code: number): RakwireError {
  if (reason === REASONS.failed) {
    return new FunctionError(code);
  }
  const [errorCode, text] = REFUSALS[reason] ?? ["refused", `the call was refused for a reason unknown here, ${reason}`];
  return new RakwireError(errorCode, text);
}
