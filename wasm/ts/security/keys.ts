/**
 * Trust and identity: the public types and options of secure connections, and the text forms of keys and tokens
 * (docs/secure.md, "Keys and their text", "Connect tokens").
 */

import { RakwireError } from "../errors.js";
import { readBytes } from "../options.js";
import { targetUrl } from "../transport/transport.js";
import type { Connection, ConnectOptions } from "../types.js";

/** The identity of a server after a connection. Store it to accept the same server next time. */
export interface KnownServer {
  /** The public key of the server: `rakwire-public-key-1:` and 43 characters. */
  readonly key: string;
  /** The hash of the server's next key, if the server has announced one. */
  readonly next?: string;
}

/** A private key and its public key. Anyone with the private key can impersonate its owner. */
export interface KeyPair {
  /** `rakwire-private-key-1:` and 43 characters. */
  readonly privateKey: string;
  /** `rakwire-public-key-1:` and 43 characters. */
  readonly publicKey: string;
}

/** Options of a secure connection. Set either `serverKey`, or `connectToken`, which contains the key of the server. */
export interface SecureConnectOptions extends Omit<ConnectOptions, "protocol"> {
  /** Secure connections exist only in RakNet. */
  protocol?: "raknet";
  /**
   * The expected server, as one of:
   *
   * - its public key or the hash of the key, as printed by `rakwire keygen`. In a URL, the 32 characters of the hash
   *   are enough.
   * - a {@link KnownServer}: the {@link SecureConnection.securePeer} of an earlier connection.
   * - `any`: every server. This protects only against eavesdropping. Store `securePeer`, and pass it next time.
   */
  serverKey?: string | KnownServer;
  /**
   * The key that identifies the client to the server: a pair, or the private key as text or as 32 bytes. Default: none.
   */
  identity?: KeyPair | string | Uint8Array;
  /** Data for the server, encrypted and bound to {@link identity}: text or bytes, at most 95 bytes. Default: none. */
  identityData?: string | Uint8Array;
  /**
   * The connect token that a backend created for the player with {@link identity}: `rakwire-connect-token-1:` and its
   * contents. If the token lists several servers, the one with the name {@link ConnectOptions.target} or the
   * `HOST:PORT` of the URL is used.
   */
  connectToken?: string;
}

/** An open secure connection. */
export interface SecureConnection extends Connection {
  /** The verified identity of the server. It stays available after the connection has closed. */
  readonly securePeer: KnownServer;
}

/** The maximum number of bytes of identity data. */
const MAX_IDENTITY_DATA = 95;

/** The options common to all entries, and the security options as encoded for the WebAssembly. */
export interface ReadOptions {
  plain: ConnectOptions;
  security: Uint8Array;
}

export function readSecureOptions(url: string | URL, options: SecureConnectOptions): ReadOptions {
  const { serverKey, identity, identityData, connectToken, ...plain } = options;
  const token = connectToken === undefined ? undefined : readToken(options, String(connectToken));
  const trust = token === undefined ? readServerKey(serverKey) : trustOf(token, url, plain.target);
  const data = readBytes("identityData", identityData, identity === undefined ? 0 : MAX_IDENTITY_DATA);
  const security = writeSecurity(trust, readIdentity(identity), data);
  return { plain: token === undefined ? plain : { ...plain, password: token.sealed }, security };
}

function readServerKey(serverKey: SecureConnectOptions["serverKey"]): Trust {
  if (serverKey === undefined) {
    throw new RakwireError("bad-option", "a secure connection needs serverKey or connectToken; for a plain one use the connect of rakwire/raknet");
  }
  return readTrust(serverKey);
}

function readToken({ serverKey, identity, password }: SecureConnectOptions, text: string): ConnectToken {
  if (serverKey !== undefined || password !== undefined) {
    throw new RakwireError("bad-option", "connectToken replaces serverKey and password; omit them");
  }
  if (identity === undefined) {
    throw new RakwireError("bad-option", "connectToken also needs identity, the private key that it was issued for");
  }
  return readConnectToken(text);
}

/** Returns the trust in the server of a token for this connection. */
function trustOf(token: ConnectToken, url: string | URL, target: string | undefined): Trust {
  const address = targetUrl(url, target);
  return trustedKey(serverOf(token, address.searchParams.get("target") ?? address.host).key);
}

function readIdentity(identity: SecureConnectOptions["identity"]): Uint8Array | undefined {
  if (identity === undefined) {
    return undefined;
  }
  const key = typeof identity === "object" && !(identity instanceof Uint8Array) ? identity?.privateKey : identity;
  return readKey("identity", PREFIXES.privateKey, key);
}

/** A server in a token. */
export interface TokenServer {
  key: Uint8Array;
  name: string;
}

/** The parts of a token that a client reads. */
interface ConnectToken {
  servers: TokenServer[];
  /** The sealed part, which the client sends instead of a password. */
  sealed: Uint8Array;
}

/** The length in bytes of the part of a token before its first server: type and expiry. */
const HEAD = 12;
const MAGIC = "rwc1";

/** Parses a token. */
export function readConnectToken(text: string): ConnectToken {
  const bytes = fromText(PREFIXES.connectToken, onlyLine(String(text)));
  const token = bytes && read(bytes);
  if (token === undefined) {
    throw new RakwireError("bad-option", "connectToken is not a connect token; was it copied as a whole?");
  }
  return token;
}

function read(bytes: Uint8Array): ConnectToken | undefined {
  let at = HEAD;
  let isWhole = String.fromCharCode(...bytes.subarray(0, MAGIC.length)) === MAGIC;
  const take = (length: number): Uint8Array => {
    const taken = bytes.subarray(at, at + length);
    isWhole &&= taken.length === length;
    at += length;
    return taken;
  };
  const takeShort = (): Uint8Array => take(take(1)[0] ?? 0);
  const count = take(1)[0] ?? 0;
  const servers = Array.from({ length: Math.min(count, MAX_TOKEN_SERVERS) }, () => ({ key: take(KEY), name: takeShort() }));
  const sealed = takeShort();
  if (!isWhole || at !== bytes.length || count < 1 || count > MAX_TOKEN_SERVERS) {
    return undefined;
  }
  const decoder = new TextDecoder();
  return { servers: servers.map(({ key, name }) => ({ key, name: decoder.decode(name) })), sealed };
}

/** Returns the server of a token that has this name: a target at the relay, or its own address. */
function serverOf({ servers }: ConnectToken, name: string): TokenServer {
  const found = servers.find((server) => server.name === name) ?? (servers.length === 1 ? servers[0] : undefined);
  if (found === undefined) {
    const names = servers.map((server) => server.name).join(" or ");
    throw new RakwireError("bad-option", `the connect token is not for ${name}; connect to ${names}`);
  }
  return found;
}

/** The kinds of trust, as in `src/npm/secure.rs`. */
const ANY = 0;
const KEY_ITSELF = 1;
const HASH = 2;
const KNOWN = 3;
const KNOWN_WITH_NEXT = 4;

/** A trusted server: the kind of trust, its key or key hash, and the hash of its next key. */
interface Trust {
  kind: number;
  key?: Uint8Array;
  next?: Uint8Array;
}

/** Trusts the server with this public key. */
function trustedKey(key: Uint8Array): Trust {
  return { kind: KEY_ITSELF, key };
}

/** Checks the value at runtime, because values stored by a page can be anything. */
function readTrust(serverKey: string | KnownServer | null | undefined): Trust {
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
    throw new RakwireError("bad-option", "serverKey must be a public key or a key hash, as printed by rakwire keygen, or any");
  }
  return { kind: HASH, key: hash };
}

/** Parses a key hash, with or without its prefix. */
function readHash(text: string): Uint8Array | undefined {
  const hash = fromText(text.startsWith(PREFIXES.keyHash) ? PREFIXES.keyHash : "", text);
  return hash?.length === KEY_HASH ? hash : undefined;
}

/** Encodes the input of `RakNetPeer.secure`. */
function writeSecurity({ kind, key, next }: Trust, identity: Uint8Array | undefined, data: Uint8Array): Uint8Array {
  const server = 1 + KEY + KEY_HASH;
  const bytes = new Uint8Array(server + (identity?.length ?? 0) + data.length);
  bytes[0] = kind;
  bytes.set(key ?? [], 1);
  bytes.set(next ?? [], 1 + KEY);
  bytes.set(identity ?? [], server);
  bytes.set(data, bytes.length - data.length);
  return bytes;
}

/** The length of a private key, public key or token key in bytes. */
export const KEY = 32;
/** The length of the hash of a public key in bytes. */
export const KEY_HASH = 24;
/** The maximum number of servers in a connect token. */
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

/** Decodes a text of this prefix followed by base64url; `undefined` if it is anything else. */
export function fromText(prefix: string, text: string): Uint8Array | undefined {
  const characters = text.slice(prefix.length);
  if (!text.startsWith(prefix) || !/^[\w-]+$/.test(characters)) {
    return undefined;
  }
  try {
    const base64 = characters.replaceAll("-", "+").replaceAll("_", "/");
    const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
    // Unused bits allow several texts for the same bytes; only the canonical text is valid.
    return toText(prefix, bytes) === text ? bytes : undefined;
  } catch {
    return undefined;
  }
}

/** Decodes a key from its text, or checks its bytes and returns them. */
export function readKey(name: string, prefix: string, key: string | Uint8Array): Uint8Array {
  const text = typeof key === "string" ? onlyLine(key) : undefined;
  const bytes = text === undefined ? key : fromText(prefix, text);
  if (!(bytes instanceof Uint8Array) || bytes.length !== KEY) {
    throw new RakwireError("bad-option", `${name} must be 32 bytes, or ${prefix} and 43 characters`);
  }
  return bytes;
}

/** Returns the only line of a file that is neither empty nor a comment. A text of one line is returned unchanged. */
function onlyLine(file: string): string {
  const lines = file.split("\n").map((line) => line.trim());
  const keys = lines.filter((line) => line !== "" && !line.startsWith("#"));
  return keys.length === 1 ? (keys[0] as string) : "";
}
