/** Fingerprints of what is passed (docs/plugins/calls.md#schemas). */

import { fingerprint } from "../plugin/fingerprint.js";
import type { ValueSchema } from "./schema.js";

const LENGTH = 8;
const HALF = 4;

/** What follows the arguments of a function, or without an answer of a signal; nothing if a type has no form. */
export function trailerOf(name: string, value: ValueSchema, answer?: ValueSchema): Uint8Array<ArrayBuffer> | undefined {
  const [form, end] = [formOf(value), answer === undefined ? "!" : formOf(answer)];
  if (form === undefined || end === undefined) {
    return undefined;
  }
  const text = answer === undefined ? form + end : `${form}=${end}`;
  return withCheck(name, low(fingerprint(Array.from(text, (char) => char.charCodeAt(0)))));
}

/** The arguments without what follows them; `undefined` if the other peer has another schema. */
export function withoutTrailer(name: string, own: Uint8Array, payload: Uint8Array): Uint8Array | undefined {
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
