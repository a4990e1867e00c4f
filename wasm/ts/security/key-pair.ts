/** Makes key pairs. */

import { RakwireError } from "../errors.js";
import type { Rust } from "../instance.js";
import { recordAt } from "../record.js";
import { KEY, PREFIXES, toText } from "./text.js";
import type { KeyPair } from "./types.js";

/** A new key pair. */
export function makeKeyPair({ memory, keyPair }: Rust): KeyPair {
  if (keyPair === undefined) {
    throw new RakwireError("bad-option", "this WebAssembly is without secure connections");
  }
  const secret = crypto.getRandomValues(new Uint8Array(KEY));
  const view = new DataView(secret.buffer);
  const [a, b, c, d] = [0, 8, 16, 24].map((at) => view.getBigUint64(at, true)) as [bigint, bigint, bigint, bigint];
  const pair = keyPair.create(a, b, c, d);
  const publicKey = toText(PREFIXES.publicKey, recordAt(memory, keyPair.publicKey(pair)));
  keyPair.free(pair, 0);
  return { privateKey: toText(PREFIXES.privateKey, secret), publicKey };
}
