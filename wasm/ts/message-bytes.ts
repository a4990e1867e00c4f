/** Checks the bytes of a message. */

import { RakwireError } from "./errors.js";

/** Throws if these are no bytes, or have gone elsewhere, as by `postMessage`. */
export function checkBytes(bytes: unknown): asserts bytes is Uint8Array {
  if (!(bytes instanceof Uint8Array)) {
    throw new RakwireError("bad-option", "a message must be a Uint8Array");
  }
  if (bytes.length > 0) {
    return;
  }
  try {
    // Not every platform has `detached`; no array can be made over such a buffer anywhere.
    new Uint8Array(bytes.buffer);
  } catch (cause) {
    throw new RakwireError("bad-option", "the buffer of the message is detached: it was transferred to somewhere else", { cause });
  }
}
