/**
 * Entry for RakNet with secure connections, which are encrypted end to end between client and server. The relay cannot
 * read them.
 */

import packed from "../pkg/secure.js";
import { openWith } from "./connection.js";
import { RakwireError } from "./errors.js";
import { readSettings } from "./options.js";
import { secureClasses } from "./rust.js";
import { createSecurePeer, makeKeyPair, SecurePeerConnection } from "./security/connection.js";
import type { KeyPair, SecureConnection, SecureConnectOptions } from "./security/keys.js";
import { readSecureOptions } from "./security/keys.js";
import type { WasmSource } from "./types.js";
import { inflate, Wasm } from "./wasm.js";

export { discover, ping } from "./ping.js";
export * from "./public.js";
export type { KeyPair, KnownServer, SecureConnection, SecureConnectOptions } from "./security/keys.js";

const wasm = /* @__PURE__ */ new Wasm(secureClasses, () => inflate(packed));

/**
 * Opens a secure connection to the game server that the relay at `url` offers as `options.target`. In Node, `url` can
 * also be the `udp://HOST:PORT` of a server. The client accepts only a server with the key in `options.serverKey` or
 * `options.connectToken`, and never falls back to an unencrypted connection.
 *
 * @throws RakwireError with the `code` and `message` of the cause, or the reason of `options.signal`. The codes that
 * are specific to secure connections are `public-key-mismatch`, `server-without-security`, `identity-required`,
 * `invalid-identity`, `invalid-password`, and `invalid-token` if the server refuses the connect token.
 */
export async function connect(url: string | URL, options: SecureConnectOptions): Promise<SecureConnection> {
  const { plain, security } = readSecureOptions(url, options);
  try {
    const settings = { ...readSettings(url, plain, "raknet"), security };
    return await openWith(wasm, settings, plain, SecurePeerConnection, createSecurePeer);
  } catch (error) {
    if (options.connectToken !== undefined && error instanceof RakwireError && error.code === "invalid-password") {
      const reason = "the server does not accept the connect token: it has expired, was used, or is for another server";
      throw new RakwireError("invalid-token", reason, { cause: error });
    }
    throw error;
  }
}

/**
 * Creates a random key pair for the option `identity`. To create a connect token, a backend needs the public key.
 *
 * @throws RakwireError with the code `wasm-unavailable`.
 */
export async function createKeyPair(source?: WasmSource | Promise<WasmSource>): Promise<KeyPair> {
  return makeKeyPair(await wasm.load(source));
}
