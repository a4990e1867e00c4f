// Keys, secure servers and relay tokens for tests, created by the command-line tool.

import { execFileSync } from "node:child_process";
import { createHmac, randomBytes, randomUUID } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { program, startEcho } from "./support.mjs";

/** Returns the output of the command-line tool. */
export function rakwire(...args) {
  const path = program("RAKWIRE_BIN", "Build it with `cargo build --release -p rakwire-cli`.");
  return execFileSync(path, args, { encoding: "utf8" }).trim();
}

/** Creates a folder that is removed at the end of the test. */
export function folderOf(t) {
  const folder = mkdtempSync(join(tmpdir(), "rakwire-secure-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Creates a key file. Returns its path, the public key and the hash of the public key. */
export function keygen(t) {
  const file = join(folderOf(t), "key");
  const [key, hash] = rakwire("keygen", file).split("\n");
  return { file, key, hash };
}

/** Starts a secure echo server, and returns it with its key. */
export async function startSecureEcho(t, ...more) {
  const pair = keygen(t);
  const { address } = await startEcho(t, "--secure", pair.file, ...more);
  return { ...pair, address, url: `udp://${address}` };
}

/**
 * Returns the key file for a relay that requires tokens, and a function that creates tokens for its target "game" with
 * an expiry in seconds.
 */
export function relayTokens(t) {
  const key = randomBytes(32);
  const file = join(folderOf(t), "token.key");
  writeFileSync(file, `hmac-sha256:${key.toString("base64url")}\n`, { mode: 0o600 });
  const part = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const token = (expiresIn = 600) => {
    const claims = { exp: Math.floor(Date.now() / 1_000) + expiresIn, jti: randomUUID(), target: "game" };
    const signed = `${part({ alg: "HS256", typ: "JWT" })}.${part(claims)}`;
    return `${signed}.${createHmac("sha256", key).update(signed).digest("base64url")}`;
  };
  return { file, token };
}
