/** Checks the options of secure connections. */

import { RakwireError } from "../errors.js";
import { readBytes } from "../options.js";
import { targetUrl } from "../transport/target.js";
import type { ConnectOptions } from "../types.js";
import type { ConnectToken } from "./connect-token.js";
import { readConnectToken, serverOf } from "./connect-token.js";
import { PREFIXES, readKey } from "./text.js";
import type { Trust } from "./trust.js";
import { readTrust, trustedKey, writeSecurity } from "./trust.js";
import type { SecureConnectOptions } from "./types.js";

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
