/**
 * Whom a client trusts to be the server, and who it is itself: the public types and the options of secure connections, with the keys and
 * tokens in them, and these as text (docs/secure.md, "Keys and their text", "Connect tokens").
 */

import { RakwireError } from "../errors.js";
import { readBytes } from "../options.js";
import { targetUrl } from "../transport/transport.js";
import type { Connection, ConnectOptions } from "../types.js";

/** What a page stores of a server after a connection, to trust it the next time. */
export interface KnownServer {
  /** The public key that the server has: `rakwire-public-key-1:` and 43 characters. */
  readonly key: string;
  /** The hash of the key that it will have next, if it has announced one. */
  readonly next?: string;
}

/** A private key, and its public one. Who has the private key can pretend to be its owner. */
export interface KeyPair {
  /** `rakwire-private-key-1:` and 43 characters. */
  readonly privateKey: string;
  /** `rakwire-public-key-1:` and 43 characters. */
  readonly publicKey: string;
}

/** How to connect in a secure connection: with `serverKey`, or with a `connectToken`, which names the key of the server. */
export interface SecureConnectOptions extends Omit<ConnectOptions, "protocol"> {
  /** Secure connections are those of RakNet. */
  protocol?: "raknet";
  /**
   * Whom the server has to be:
   *
   * - its public key or the hash of that, as `rakwire keygen` prints them; of the hash the 32 characters of a URL will do;
   * - a {@link KnownServer}, which {@link SecureConnection.securePeer} was in an earlier connection;
   * - `any`, which protects against who only listens. Store `securePeer` then, and give it the next time.
   */
  serverKey?: string | KnownServer;
  /** The key with which the client identifies itself: a pair, or the private key as text or in 32 bytes. Default: none. */
  identity?: KeyPair | string | Uint8Array;
  /** What the server gets with {@link identity}, encrypted with it and bound to it: a text or bytes, at most 95 bytes. Default: nothing. */
  identityData?: string | Uint8Array;
  /**
   * What a backend has made for the player with {@link identity}: `rakwire-connect-token-1:` and what follows. The server is
   * the only one that the token names, or the one that it calls as {@link ConnectOptions.target} does, or `HOST:PORT` as the URL.
   */
  connectToken?: string;
}

/** An open secure connection. */
export interface SecureConnection extends Connection {
  /** Whom the server has shown to be, also when the connection has ended. */
  readonly securePeer: KnownServer;
}

/** Bytes that an identity has room for beside its key. */
const MAX_IDENTITY_DATA = 95;

/** What a connection is opened with: the options that every entry has, and what the WebAssembly reads besides. */
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
    throw new RakwireError("bad-option", "a secure connection needs serverKey or connectToken; without security take rakwire/raknet");
  }
  return readTrust(serverKey);
}

function readToken({ serverKey, identity, password }: SecureConnectOptions, text: string): ConnectToken {
  if (serverKey !== undefined || password !== undefined) {
    throw new RakwireError("bad-option", "a connect token has the key of the server, and stands for the password; leave them out");
  }
  if (identity === undefined) {
    throw new RakwireError("bad-option", "a connect token needs the identity for which it was made");
  }
  return readConnectToken(text);
}

/** Trusts the server of the token to which the connection leads. */
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

/** A server that a token names. */
export interface TokenServer {
  key: Uint8Array;
  name: string;
}

/** What a client needs of a token. */
interface ConnectToken {
  servers: TokenServer[];
  /** What stands where a password would. */
  sealed: Uint8Array;
}

/** Bytes before the first server but one: what it is, and the expiry. */
const HEAD = 12;
const MAGIC = "rwc1";

/** The token of a text. */
export function readConnectToken(text: string): ConnectToken {
  const bytes = fromText(PREFIXES.connectToken, onlyLine(String(text)));
  const token = bytes && read(bytes);
  if (token === undefined) {
    throw new RakwireError("bad-option", "connectToken is no connect token; was it copied as a whole?");
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

/** The server of a token to which a connection leads, by the name of the relay's target or by its own address. */
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

/** A server that is trusted: the kind, its key or the hash of that, and the hash of its next key. */
interface Trust {
  kind: number;
  key?: Uint8Array;
  next?: Uint8Array;
}

/** The server with this public key. */
function trustedKey(key: Uint8Array): Trust {
  return { kind: KEY_ITSELF, key };
}

/** What a page has stored may be anything. */
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
function onlyLine(file: string): string {
  const lines = file.split("\n").map((line) => line.trim());
  const keys = lines.filter((line) => line !== "" && !line.startsWith("#"));
  return keys.length === 1 ? (keys[0] as string) : "";
}
