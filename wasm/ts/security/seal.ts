/**
 * The sealed part of a connect token, which only a backend and its game servers can decrypt (docs/secure.md, "Connect
 * tokens").
 */

import { createCipheriv, createHmac } from "node:crypto";

import { RakwireError } from "../errors.js";
import { MAX_TOKEN_SERVERS } from "./keys.js";

/** The claims for a game server, in binary form. */
export interface Claims {
  userId: bigint;
  /** Seconds since 1970. */
  expires: bigint;
  clientKey: Uint8Array;
  /** The key hashes of the servers. */
  servers: readonly Uint8Array[];
  userData: Uint8Array;
}

export const SALT = 24;
const MAX_USER_DATA = 128;
const MAX_SEALED = 255;
const TAG = 16;

/** Seals claims. The random salt also identifies the token. */
export function seal(key: Uint8Array, salt: Uint8Array, claims: Claims): Uint8Array {
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
