/** Whom a client trusts to be the server, and who it is itself, as the WebAssembly reads it. */

import { RakwireError } from "../errors.js";
import { fromText, KEY, KEY_HASH, onlyLine, PREFIXES, readKey } from "./text.js";
import type { KnownServer } from "./types.js";

/** The kinds of trust, as in `src/npm/secure.rs`. */
const ANY = 0;
const KEY_ITSELF = 1;
const HASH = 2;
const KNOWN = 3;
const KNOWN_WITH_NEXT = 4;

/** A server that is trusted: the kind, its key or the hash of that, and the hash of its next key. */
export interface Trust {
  kind: number;
  key?: Uint8Array;
  next?: Uint8Array;
}

/** The server with this public key. */
export function trustedKey(key: Uint8Array): Trust {
  return { kind: KEY_ITSELF, key };
}

/** What a page has stored may be anything. */
export function readTrust(serverKey: string | KnownServer | null | undefined): Trust {
  if (typeof serverKey !== "object" || serverKey === null) {
    const text = onlyLine(String(serverKey));
    return text === "any" ? { kind: ANY } : readPinned(text);
  }
  const key = readKey("serverKey.key", PREFIXES.publicKey, serverKey.key);
  if (serverKey.next === undefined) {
    return { kind: KNOWN, key };
  }
  const next = readHash(onlyLine(String(serverKey.next)));
  if (next === undefined) {
    throw new RakwireError("bad-option", "serverKey.next must be a key hash");
  }
  return { kind: KNOWN_WITH_NEXT, key, next };
}

function readPinned(text: string): Trust {
  const key = fromText(PREFIXES.publicKey, text);
  if (key?.length === KEY) {
    return trustedKey(key);
  }
  const hash = readHash(text);
  if (hash === undefined) {
    throw new RakwireError("bad-option", "serverKey must be a public key or a key hash, as keygen prints them, or any");
  }
  return { kind: HASH, key: hash };
}

/** The hash of a text; in a URL its 32 characters stand alone. */
function readHash(text: string): Uint8Array | undefined {
  const hash = fromText(text.startsWith(PREFIXES.keyHash) ? PREFIXES.keyHash : "", text);
  return hash?.length === KEY_HASH ? hash : undefined;
}

/** What `RakNetPeer.secure` reads. */
export function writeSecurity({ kind, key, next }: Trust, identity: Uint8Array | undefined, data: Uint8Array): Uint8Array {
  const server = 1 + KEY + KEY_HASH;
  const bytes = new Uint8Array(server + (identity?.length ?? 0) + data.length);
  bytes[0] = kind;
  bytes.set(key ?? [], 1);
  bytes.set(next ?? [], 1 + KEY);
  bytes.set(identity ?? [], server);
  bytes.set(data, bytes.length - data.length);
  return bytes;
}
