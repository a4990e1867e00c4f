/** Creates connect tokens in the backend of a game, in Node or Deno. */

import { createCipheriv, createHash, createHmac, randomBytes } from "node:crypto";

import { RakwireError } from "./errors.js";
import { checkNames } from "./options.js";
import { KEY, KEY_HASH, MAX_TOKEN_SERVERS, PREFIXES, readKey, toText } from "./security/keys.js";

export { RakwireError } from "./errors.js";
export type { ErrorCode, RakwireErrorOptions } from "./errors.js";

/** A server that accepts the token. */
export interface TokenServer {
  /** The public key of the server, as printed by `rakwire keygen`. */
  key: string | Uint8Array;
  /**
   * The name by which the client finds the server: the target at a relay, or `HOST:PORT`. At most 255 bytes (UTF-8).
   */
  name: string;
}

/** The contents of a token, and the key to seal it with. */
export interface TokenOptions {
  /** The token key, shared with the servers: as text, as the contents of a key file, or as 32 bytes. */
  key: string | Uint8Array;
  /** The number that identifies the player to the servers, an unsigned 64-bit integer. */
  userId: bigint | number;
  /** The expiry, which servers check with a resolution of one second. A minute from creation is enough. */
  expires: Date;
  /** The servers that accept the token, 1 to 4, in the order in which the client should try them. */
  servers: readonly TokenServer[];
  /** The public key of the player. Only the holder of its private key can use the token. */
  clientKey: string | Uint8Array;
  /**
   * Additional data about the player for the servers, at most 128 bytes or fewer with several servers. Text is sent as
   * UTF-8.
   */
  userData?: string | Uint8Array;
}

const MAX_U64 = 2n ** 64n - 1n;
const MAX_NAME = 255;
const SALT = 24;
const MAX_USER_DATA = 128;
const MAX_SEALED = 255;
const TAG = 16;

/** Creates a token key in the format of a line of a key file. Anyone with this key can create tokens. */
export function createTokenKey(): string {
  return toText(PREFIXES.tokenKey, randomBytes(KEY));
}

/**
 * Creates a connect token, which opens one connection. Send it to the player over HTTPS, for the option `connectToken`
 * of `rakwire/secure`.
 *
 * @throws RakwireError with the code `bad-option`.
 */
export function createToken(options: TokenOptions): string {
  checkNames(options, ["key", "userId", "expires", "servers", "clientKey", "userData"]);
  const servers = readServers(options.servers);
  const expires = readExpiry(options.expires);
  const sealed = seal(readKey("key", PREFIXES.tokenKey, options.key), randomBytes(SALT), {
    userId: readUserId(options.userId),
    expires,
    clientKey: readKey("clientKey", PREFIXES.publicKey, options.clientKey),
    servers: servers.map(({ key }) => hashOf(key)),
    userData: readBytes("userData", options.userData ?? ""),
  });
  const head = Buffer.alloc(13);
  head.write("rwc1");
  head.writeBigUInt64BE(expires, 4);
  head.writeUInt8(servers.length, 12);
  const named = servers.flatMap(({ key, name }) => [key, Buffer.of(name.length), name]);
  return toText(PREFIXES.connectToken, Buffer.concat([head, ...named, Buffer.of(sealed.length), sealed]));
}

/** Returns the key hash of a server. */
function hashOf(key: Uint8Array): Uint8Array {
  return createHash("blake2s256").update("rakwire key hash 1").update(key).digest().subarray(0, KEY_HASH);
}

/** Validates the servers, because a backend may pass on unchecked values. */
function readServers(servers: readonly TokenServer[]): ReturnType<typeof readServer>[] {
  if (!Array.isArray(servers) || !servers.every((server) => typeof server === "object" && server !== null)) {
    throw new RakwireError("bad-option", "servers must be a list of { key, name }");
  }
  return (servers as readonly TokenServer[]).map(readServer);
}

function readServer({ key, name }: TokenServer): { key: Uint8Array; name: Uint8Array } {
  const bytes = readBytes("the name of a server", name);
  if (bytes.length > MAX_NAME) {
    throw new RakwireError("bad-option", "the name of a server has at most 255 bytes");
  }
  return { key: readKey("the key of a server", PREFIXES.publicKey, key), name: bytes };
}

function readUserId(userId: bigint | number): bigint {
  const isNumber = typeof userId === "bigint" || Number.isSafeInteger(userId);
  const id = isNumber ? BigInt(userId) : -1n;
  if (id < 0n || id > MAX_U64) {
    throw new RakwireError("bad-option", `userId must be an unsigned integer of 64 bits, not ${String(userId)}`);
  }
  return id;
}

function readExpiry(expires: Date): bigint {
  const seconds = expires instanceof Date ? Math.floor(expires.getTime() / 1_000) : NaN;
  if (!(seconds >= 0)) {
    throw new RakwireError("bad-option", "expires must be a Date");
  }
  return BigInt(seconds);
}

function readBytes(name: string, bytes: string | Uint8Array): Uint8Array {
  if (typeof bytes !== "string" && !(bytes instanceof Uint8Array)) {
    throw new RakwireError("bad-option", `${name} must be a string or a Uint8Array`);
  }
  return typeof bytes === "string" ? Buffer.from(bytes) : bytes;
}

/** The claims of a token in binary form, for a game server. */
interface Claims {
  userId: bigint;
  /** The expiry in seconds since the Unix epoch. */
  expires: bigint;
  clientKey: Uint8Array;
  /** The key hashes of the servers that accept the token. */
  servers: readonly Uint8Array[];
  userData: Uint8Array;
}

/**
 * Encrypts claims so that only the backend and its game servers can decrypt them (docs/secure.md, "Connect tokens").
 * The random salt also identifies the token.
 */
function seal(key: Uint8Array, salt: Uint8Array, claims: Claims): Uint8Array {
  const plain = write(claims);
  const head = Buffer.concat([Buffer.from("rwt1"), salt]);
  const fits = claims.servers.length >= 1 && claims.servers.length <= MAX_TOKEN_SERVERS && claims.userData.length <= MAX_USER_DATA;
  if (!fits || head.length + plain.length + TAG > MAX_SEALED) {
    throw new RakwireError("bad-option", "a token has 1 to 4 servers and up to 128 bytes of user data, fewer with several servers");
  }
  const own = createHmac("blake2s256", key).update("rakwire token 1").update(salt).digest();
  const cipher = createCipheriv("chacha20-poly1305", own, new Uint8Array(12), { authTagLength: TAG });
  cipher.setAAD(head, { plaintextLength: plain.length });
  return Buffer.concat([head, cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
}

function write({ userId, expires, clientKey, servers, userData }: Claims): Buffer {
  const numbers = Buffer.alloc(16);
  numbers.writeBigUInt64BE(userId, 0);
  numbers.writeBigUInt64BE(expires, 8);
  return Buffer.concat([numbers, clientKey, Buffer.of(servers.length), ...servers, Buffer.of(userData.length), userData]);
}
