/** Keys and tokens as text: a prefix that says what it is, and base64url (docs/secure.md, "Keys and their text"). */

import { RakwireError } from "../errors.js";

/** Bytes of a private or public key, and of a token key. */
export const KEY = 32;
/** Bytes of the hash of a public key. */
export const KEY_HASH = 24;
/** How many servers a connect token names at most. */
export const MAX_TOKEN_SERVERS = 4;

export const PREFIXES = {
  privateKey: "rakwire-private-key-1:",
  publicKey: "rakwire-public-key-1:",
  keyHash: "rakwire-key-hash-1:",
  tokenKey: "rakwire-token-key-1:",
  connectToken: "rakwire-connect-token-1:",
} as const;

export function toText(prefix: string, bytes: Uint8Array): string {
  const base64 = btoa(String.fromCharCode(...bytes));
  return prefix + base64.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** The bytes of a text, if it has this prefix and nothing but base64url behind it. */
export function fromText(prefix: string, text: string): Uint8Array | undefined {
  const characters = text.slice(prefix.length);
  if (!text.startsWith(prefix) || !/^[\w-]+$/.test(characters)) {
    return undefined;
  }
  try {
    const base64 = characters.replaceAll("-", "+").replaceAll("_", "/");
    const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
    // Several texts stand for the same bytes where bits are left over; one of them is right.
    return toText(prefix, bytes) === text ? bytes : undefined;
  } catch {
    return undefined;
  }
}

/** The key of a text, or its bytes themselves. */
export function readKey(name: string, prefix: string, key: string | Uint8Array): Uint8Array {
  const text = typeof key === "string" ? onlyLine(key) : undefined;
  const bytes = text === undefined ? key : fromText(prefix, text);
  if (!(bytes instanceof Uint8Array) || bytes.length !== KEY) {
    throw new RakwireError("bad-option", `${name} must be 32 bytes, or ${prefix} and 43 characters`);
  }
  return bytes;
}

/** The one line of a file that is neither empty nor a comment; a text of one line is itself. */
export function onlyLine(file: string): string {
  const lines = file.split("\n").map((line) => line.trim());
  const keys = lines.filter((line) => line !== "" && !line.startsWith("#"));
  return keys.length === 1 ? (keys[0] as string) : "";
}
