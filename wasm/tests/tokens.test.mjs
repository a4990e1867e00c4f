// Connect tokens of a backend: against the vectors of the repository, and at a real server.

import assert from "node:assert/strict";
import crypto from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";
import { test } from "node:test";

import { connect, createKeyPair } from "rakwire/secure";
import { createToken, createTokenKey } from "rakwire/tokens";

import { fromText, PREFIXES, readConnectToken, toText } from "../dist/security/keys.js";
import { folderOf, keygen, rakwire, startSecureEcho } from "./keys.mjs";
import { fails, LIMIT_MS, next, pattern } from "./support.mjs";

const VECTORS = JSON.parse(readFileSync(new URL("secure.json", import.meta.url), "utf8"));
const TEXTS = { "private key": "privateKey", "public key": "publicKey", "key hash": "keyHash", "token key": "tokenKey" };
const MINUTE = 60_000;

const hex = (text) => Uint8Array.from(Buffer.from(text, "hex"));
const inAMinute = () => new Date(Date.now() + MINUTE);

test("keys are encoded as in the test vectors", () => {
  assert.equal(VECTORS.texts.length, Object.keys(TEXTS).length);
  for (const { name, hex: bytes, text } of VECTORS.texts) {
    const prefix = PREFIXES[TEXTS[name]];
    assert.equal(toText(prefix, hex(bytes)), text);
    assert.deepEqual(fromText(prefix, text), hex(bytes));
  }
});

test("tokens are sealed as in the test vectors", (t) => {
  // The vectors list the servers of a token as the hashes of these keys, in this order.
  const keys = VECTORS.connect_tokens.at(-1).servers.map(({ key }) => hex(key));
  const random = t.mock.method(crypto, "randomBytes");
  syncBuiltinESMExports();
  t.after(() => {
    random.mock.restore();
    syncBuiltinESMExports();
  });
  assert.ok(VECTORS.tokens.length >= 2);
  for (const { name, token_key, salt, user_id, expires, client, servers, user_data, sealed } of VECTORS.tokens) {
    random.mock.mockImplementation(() => Buffer.from(salt, "hex"));
    const token = createToken({
      key: hex(token_key),
      userId: BigInt(`0x${user_id}`),
      expires: new Date(expires * 1_000),
      servers: keys.slice(0, servers.length).map((key) => ({ key, name: "" })),
      clientKey: hex(client),
      userData: hex(user_data),
    });
    assert.equal(Buffer.from(readConnectToken(token).sealed).toString("hex"), sealed, name);
  }
});

test("a connect token is encoded as in the test vectors and decoded again", () => {
  assert.ok(VECTORS.connect_tokens.length >= 2);
  for (const { name, servers, sealed, hex: bytes, text } of VECTORS.connect_tokens) {
    assert.equal(toText(PREFIXES.connectToken, hex(bytes)), text, name);
    const read = readConnectToken(text);
    assert.deepEqual(read.servers, servers.map((server) => ({ key: hex(server.key), name: server.name })), name);
    assert.deepEqual(read.sealed, hex(sealed), name);
  }
});

/** Starts a server that requires tokens. Returns it with a function that creates tokens. */
async function startWithTokens(t) {
  const file = join(folderOf(t), "token.key");
  const tokenKey = createTokenKey();
  writeFileSync(file, `# made here\n${tokenKey}\n`, { mode: 0o600 });
  const server = await startSecureEcho(t, "--token-key", file);
  const identity = await createKeyPair();
  const usual = () => ({
    key: tokenKey,
    userId: 42,
    expires: inAMinute(),
    servers: [{ key: server.key, name: server.address }],
    clientKey: identity.publicKey,
  });
  return { server, identity, usual, file };
}

test("a server accepts each token of a backend once", async (t) => {
  const { server, identity, usual, file } = await startWithTokens(t);
  const other = { key: keygen(t).key, name: "game.example.org:19132" };
  const kinds = [
    {},
    { userId: 2n ** 64n - 1n, userData: "level 3 – ❄" },
    { key: readFileSync(file, "utf8"), userData: new Uint8Array(128) },
    { key: fromText(PREFIXES.tokenKey, usual().key), servers: [...Array(3).fill(other), usual().servers[0]] },
  ];
  for (const kind of kinds) {
    const connectToken = createToken({ ...usual(), ...kind });
    // With a trailing newline, as in a file or a program's output.
    const connection = await connect(server.url, { connectToken: `${connectToken}\n`, identity, timeoutMs: LIMIT_MS });
    connection.send(pattern(20));
    assert.deepEqual((await next(connection)).bytes, pattern(20));
    await connection.close();
    await assert.rejects(connect(server.url, { connectToken, identity }), fails("invalid-token", /was used/));
  }
});

test("a server refuses tokens that are expired, for other clients or servers, or of another backend", async (t) => {
  const { server, identity, usual } = await startWithTokens(t);
  const elsewhere = [{ key: keygen(t).key, name: "elsewhere" }, usual().servers[0]];
  const refused = [
    [{ expires: new Date(Date.now() - MINUTE) }, "invalid-token"],
    [{ key: createTokenKey() }, "invalid-token"],
    [{ clientKey: (await createKeyPair()).publicKey }, "invalid-identity"],
  ];
  for (const [kind, code] of refused) {
    const connectToken = createToken({ ...usual(), ...kind });
    await assert.rejects(connect(server.url, { connectToken, identity }), fails(code, /./));
  }
  const { sealed } = readConnectToken(createToken({ ...usual(), servers: elsewhere.slice(0, 1) }));
  // Sends the token to a server that is not in its list.
  const attempt = connect(server.url, { serverKey: server.key, identity, password: sealed });
  await assert.rejects(attempt, fails("invalid-password", /password/));
});

test("a client reads tokens of a backend like those of the command-line tool", async (t) => {
  const { usual, file, server, identity } = await startWithTokens(t);
  const args = ["--token-key", file, "--user", "42", "--client-key", identity.publicKey];
  const [ours, theirs] = [createToken(usual()), rakwire("token", ...args, "--server", `${server.key}@${server.address}`)].map(readConnectToken);
  assert.deepEqual(ours.servers, theirs.servers);
  assert.equal(ours.sealed.length, theirs.sealed.length);
  assert.notDeepEqual(ours.sealed, theirs.sealed);
});

test("creating a token with invalid options throws", async (t) => {
  const { usual } = await startWithTokens(t);
  const [server] = usual().servers;
  const wrong = [
    [{ key: usual().clientKey }, /^key must be/],
    [{ key: new Uint8Array(31) }, /^key must be/],
    [{ key: undefined }, /^key must be/],
    [{ clientKey: usual().key }, /^clientKey must be/],
    ...[-1, 1.5, 2 ** 53, 2n ** 64n, -1n, "7", undefined].map((userId) => [{ userId }, /userId must be/]),
    ...[Date.now(), new Date(NaN), new Date(-1), undefined].map((expires) => [{ expires }, /expires must be a Date/]),
    ...[undefined, null, "server", [null], [server.key]].map((servers) => [{ servers }, /servers must be a list/]),
    [{ servers: [] }, /1 to 4 servers/],
    [{ servers: Array(5).fill(server) }, /1 to 4 servers/],
    [{ servers: [{ ...server, key: "" }] }, /key of a server/],
    [{ servers: [{ ...server, name: "x".repeat(256) }] }, /at most 255/],
    [{ servers: [{ ...server, name: undefined }] }, /name of a server/],
    [{ userData: "x".repeat(129) }, /128 bytes/],
    [{ userData: 7 }, /userData must be/],
  ];
  for (const [kind, words] of wrong) {
    assert.throws(() => createToken({ ...usual(), ...kind }), fails("bad-option", words));
  }
  // Each further server reduces the space for the data.
  for (const [count, most] of [[1, 128], [2, 113], [3, 89], [4, 65]]) {
    const servers = Array(count).fill(server);
    assert.ok(createToken({ ...usual(), servers, userData: new Uint8Array(most) }));
    assert.throws(() => createToken({ ...usual(), servers, userData: new Uint8Array(most + 1) }), fails("bad-option", /fewer/));
  }
});
