/** Connect tokens, as a client reads them (docs/secure.md, "Connect tokens"). */

import { RakwireError } from "../errors.js";
import { fromText, KEY, MAX_TOKEN_SERVERS, onlyLine, PREFIXES } from "./text.js";

/** A server that a token names. */
export interface TokenServer {
  key: Uint8Array;
  name: string;
}

/** What a client needs of a token. */
export interface ConnectToken {
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
export function serverOf({ servers }: ConnectToken, name: string): TokenServer {
  const found = servers.find((server) => server.name === name) ?? (servers.length === 1 ? servers[0] : undefined);
  if (found === undefined) {
    const names = servers.map((server) => server.name).join(" or ");
    throw new RakwireError("bad-option", `the connect token is not for ${name}; connect to ${names}`);
  }
  return found;
}
