// Secure connections: the entry `rakwire/secure` in Node over UDP, and in a page through a relay, to real servers.

import assert from "node:assert/strict";
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { connect as connectPlain } from "rakwire";
import { connect as connectGame } from "rakwire/game-protocol";
import { connect as connectRakNet } from "rakwire/raknet";
import { connect, createKeyPair } from "rakwire/secure";
import { connect as connectSlim } from "rakwire/slim";

import { SecurePeerConnection } from "../dist/security/connection.js";
import { openPage } from "./browser.mjs";
import { folderOf, keygen, rakwire, relayTokens, startSecureEcho } from "./keys.mjs";
import { fails, LIMIT_MS, next, pattern, startEcho, startLoggedEcho, startRelay, until } from "./support.mjs";

const PACKAGE = fileURLToPath(new URL("..", import.meta.url));
const PUBLIC_KEY = /^rakwire-public-key-1:[\w-]{43}$/;

/** Connects, and checks that messages are echoed. */
async function talk(url, options) {
  const connection = await connect(url, { timeoutMs: LIMIT_MS, ...options });
  for (const length of [1, 100_000]) {
    connection.send(pattern(length));
    assert.ok(Buffer.from((await next(connection)).bytes).equals(pattern(length)), `${length} bytes`);
  }
  assert.equal((await connection.close({ signal: AbortSignal.timeout(LIMIT_MS) })).code, "local");
  return connection;
}

test("messages pass to a server trusted by its key, its key hash, an earlier connection, or `any`", async (t) => {
  const { key, hash, url } = await startSecureEcho(t);
  const inUrl = hash.split(":")[1];
  for (const serverKey of [key, hash, inUrl, "any", { key }, { key, next: hash }]) {
    const { securePeer } = await talk(url, { serverKey });
    assert.deepEqual(securePeer, { key });
    assert.match(securePeer.key, PUBLIC_KEY);
  }
});

test("a server with a new key is trusted only if the key was announced as the next key", async (t) => {
  const [before, after] = [keygen(t), await startSecureEcho(t)];
  await talk(after.url, { serverKey: { key: before.key, next: after.hash } });
  const attempt = connect(after.url, { serverKey: { key: before.key, next: before.hash } });
  await assert.rejects(attempt, fails("public-key-mismatch", /another public key/));
});

test("a server with another key or without security is refused", async (t) => {
  const [secure, plain, other] = [await startSecureEcho(t), await startEcho(t), keygen(t)];
  for (const serverKey of [other.key, other.hash, { key: other.key }]) {
    await assert.rejects(connect(secure.url, { serverKey }), fails("public-key-mismatch", /another public key/));
  }
  for (const serverKey of [other.key, "any"]) {
    const attempt = connect(`udp://${plain.address}`, { serverKey });
    await assert.rejects(attempt, fails("server-without-security", /does not offer secure/));
  }
  await assert.rejects(connectRakNet(secure.url), fails("security-required", /secure connection/));
});

test("a server that requires an identity refuses clients without one, and accepts each form of identity", async (t) => {
  const { key, url } = await startSecureEcho(t, "--require-identity");
  await assert.rejects(connect(url, { serverKey: key }), fails("identity-required", /identity/));
  const pair = await createKeyPair();
  const file = readFileSync(keygen(t).file, "utf8");
  for (const identity of [pair, pair.privateKey, new Uint8Array(32).fill(7), file]) {
    await talk(url, { serverKey: key, identity });
  }
});

test("identity data reaches the server, and invalid identity data is refused", async (t) => {
  const server = keygen(t);
  const { address, logged } = await startLoggedEcho(t, "--secure", server.file, "--require-identity");
  const identity = await createKeyPair();
  await talk(`udp://${address}`, { serverKey: server.key, identity, identityData: "hall 3" });
  await until(() => logged().includes(`identity=${identity.publicKey} data=hall 3`), "the server logs the identity and its data");
  for (const wrong of [{ identityData: "x" }, { identity, identityData: "x".repeat(96) }, { identity, identityData: 7 }]) {
    await assert.rejects(connect(`udp://${address}`, { serverKey: server.key, ...wrong }), fails("bad-option", /identityData/));
  }
});

test("the password of a secure connection reaches the server, and a wrong password is refused", async (t) => {
  const { key, url } = await startSecureEcho(t, "--password", "snow");
  await talk(url, { serverKey: key, password: "snow" });
  await assert.rejects(connect(url, { serverKey: key, password: "rain" }), fails("invalid-password", /another password/));
});

test("the command-line tool derives the same public key, and no two key pairs are the same", async (t) => {
  const [first, second] = [await createKeyPair(), await createKeyPair()];
  assert.match(first.publicKey, PUBLIC_KEY);
  assert.notEqual(first.privateKey, second.privateKey);
  const file = join(folderOf(t), "key");
  writeFileSync(file, `${first.privateKey}\n`, { mode: 0o600 });
  assert.equal((await startedKey(t, file)).key, first.publicKey);
});

/** Starts a server with this key file, and returns the public key that it prints. */
async function startedKey(t, file) {
  const { address } = await startEcho(t, "--secure", file);
  const { securePeer } = await talk(`udp://${address}`, { serverKey: "any" });
  return securePeer;
}

/** Starts a server that requires tokens. Returns it with a function that creates tokens for one client. */
async function startWithTokens(t) {
  const tokenKey = join(folderOf(t), "token.key");
  rakwire("keygen", "--token", tokenKey);
  const server = await startSecureEcho(t, "--token-key", tokenKey);
  const identity = await createKeyPair();
  const tokenFor = (client, ...servers) => {
    const named = servers.flatMap((one) => ["--server", one]);
    return rakwire("token", "--token-key", tokenKey, "--user", "7", "--client-key", client, ...named);
  };
  return { server, identity, tokenFor, token: (...servers) => tokenFor(identity.publicKey, ...servers) };
}

test("a connect token opens one connection of its own client", async (t) => {
  const { server, identity, token } = await startWithTokens(t);
  const connectToken = token(`${server.key}@${server.address}`);
  const other = await createKeyPair();
  await assert.rejects(connect(server.url, { connectToken, identity: other }), fails("invalid-identity", /identity/));
  assert.deepEqual((await talk(server.url, { connectToken, identity })).securePeer, { key: server.key });
  await assert.rejects(connect(server.url, { connectToken, identity }), fails("invalid-token", /was used/));
  const attempt = connect(server.url, { serverKey: server.key, identity, password: "snow" });
  await assert.rejects(attempt, fails("invalid-password", /password/));
  await assert.rejects(connect(server.url, { serverKey: server.key }), fails("identity-required", /identity/));
});

test("with a token for several servers, only the server of the connection is trusted", async (t) => {
  const { server, identity, token } = await startWithTokens(t);
  const other = keygen(t);
  const connectToken = token(`${other.key}@game.example.org:1`, `${server.key}@${server.address}`);
  await talk(server.url, { connectToken, identity });
  const swapped = token(`${server.key}@game.example.org:1`, `${other.key}@${server.address}`);
  await assert.rejects(connect(server.url, { connectToken: swapped, identity }), fails("public-key-mismatch", /key/));
  const elsewhere = token(`${server.key}@game.example.org:1`, `${other.key}@game.example.org:2`);
  await assert.rejects(connect(server.url, { connectToken: elsewhere, identity }), fails("bad-option", /org:1 or game/));
});

test("invalid options and arbitrary stored data are refused", async (t) => {
  const { server, identity, token } = await startWithTokens(t);
  const { key, hash, url } = server;
  const connectToken = token(`${key}@${server.address}`);
  const wrong = [
    [{}, /needs serverKey or connectToken/],
    [{ identity }, /needs serverKey or connectToken/],
    ...[null, "", "ANY", key.slice(0, -1), `${key}A`, `${key.slice(0, -1)}+`, `${key.slice(0, -1)}=`, hash.slice(0, -1), identity.privateKey, 7].map(
      (serverKey) => [{ serverKey }, /serverKey must be/],
    ),
    [{ serverKey: {} }, /serverKey.key must be/],
    [{ serverKey: { key, next: key } }, /serverKey.next/],
    [{ serverKey: { key, next: null } }, /serverKey.next/],
    ...[null, "", identity.publicKey, new Uint8Array(31), {}, 7].map((bad) => [{ serverKey: key, identity: bad }, /identity must be/]),
    [{ serverKey: key, connectToken, identity }, /omit them/],
    [{ password: "snow", connectToken, identity }, /omit them/],
    [{ connectToken }, /also needs identity/],
    ...[null, "", connectToken.slice(0, -2), `${connectToken}AAAA`, key, connectToken.replace("cndj", "cndk")].map((bad) => [
      { connectToken: bad, identity },
      /not a connect token/,
    ]),
    [{ serverKey: key, protocol: "game" }, /only the protocol raknet/],
  ];
  for (const [options, words] of wrong) {
    await assert.rejects(connect(url, options), fails("bad-option", words), JSON.stringify(options));
  }
});

test("an entry without secure connections refuses options for them", async (t) => {
  const [plain, game] = [await startEcho(t), await startEcho(t, "--protocol", "game")];
  const entries = [[connectPlain, plain], [connectRakNet, plain], [connectSlim, plain], [connectGame, game]];
  for (const [open, { address }] of entries) {
    for (const options of [{ serverKey: "any" }, { serverKey: null }, { identity: null }, { connectToken: "" }]) {
      await assert.rejects(open(`udp://${address}`, options), fails("bad-option", /connect of rakwire\/secure/));
    }
  }
});

test("the WebAssembly of another entry is refused", async (t) => {
  const { url } = await startSecureEcho(t);
  const wasm = new URL(import.meta.resolve("rakwire/raknet.wasm"));
  // The first connection of a module determines its WebAssembly, so this test imports a copy of the module.
  const { connect: open } = await import("../dist/secure.js?other");
  await assert.rejects(open(url, { serverKey: "any", wasm }), fails("bad-option", /has no secure connections/));
});

test("securePeer contains the announced hash of the server's next key", () => {
  const hash = "rakwire-key-hash-1:D_Pr0NQeTUwHr910FopPzdj_XhPoqKv_";
  const bytes = Buffer.from(hash.split(":")[1], "base64url");
  let owner;
  const connection = new SecurePeerConnection((given) => (owner = given));
  owner.onConnected(Uint8Array.from([...new Uint8Array(32), ...bytes]));
  assert.deepEqual(connection.securePeer, { key: `rakwire-public-key-1:${"A".repeat(43)}`, next: hash });
  assert.throws(() => owner.onConnected(undefined), fails("internal", /not secure/));
});

/** Opens a page of a relay that also serves the package. */
async function openSecurePage(t, targets, ...more) {
  const folder = folderOf(t);
  for (const part of ["dist", "pkg"]) {
    cpSync(join(PACKAGE, part), join(folder, part), { recursive: true });
  }
  writeFileSync(join(folder, "index.html"), "<!doctype html><title>rakwire</title>");
  const relay = await startRelay(t, targets, "--serve", folder, ...more);
  const page = await openPage(t);
  await page.goto(`http://${relay.address}/`);
  return page;
}

for (const place of ["page", "worker"]) {
  test(`a ${place} opens secure connections through a relay and gets an error if it cannot`, async (t) => {
    const [secure, plain, other] = [await startSecureEcho(t), await startEcho(t), keygen(t)];
    const page = await openSecurePage(t, { secure: secure.address, plain: plain.address });
    const result = await page.evaluate(async ([inWorker, right, wrong]) => {
      const [{ connect }, { worker }] = await Promise.all([import("/dist/secure.js"), import("/dist/worker.js")]);
      const open = (target, serverKey) =>
        connect("/ws", { target, serverKey, timeoutMs: 60_000, ...(inWorker && { worker }) });
      const connection = await open("secure", right);
      connection.send(Uint8Array.of(0xfe, 7));
      const { bytes } = await connection.receive();
      await connection.close();
      const codes = [];
      for (const attempt of [open("secure", wrong), open("plain", "any")]) {
        codes.push(await attempt.then(() => "open", ({ code }) => code));
      }
      return { echo: bytes[1], peer: connection.securePeer, codes };
    }, [place === "worker", secure.hash, other.key]);
    assert.deepEqual(result, { echo: 7, peer: { key: secure.key }, codes: ["public-key-mismatch", "server-without-security"] });
  });
}

test("a page opens a secure connection over each transport", async (t) => {
  const { address, key } = await startSecureEcho(t);
  const page = await openSecurePage(t, { game: address }, "--webrtc-allow-without-origin");
  for (const wanted of ["websocket", "webtransport", "webrtc"]) {
    const result = await page.evaluate(async ([wanted, serverKey]) => {
      const { connect } = await import("/dist/secure.js");
      const connection = await connect("/ws", { target: "game", transport: wanted, serverKey, timeoutMs: 60_000 });
      connection.send(new Uint8Array(3_000).fill(0xfe));
      const { bytes } = await connection.receive();
      const { transport, securePeer } = connection;
      await connection.close();
      return { transport, length: bytes.length, key: securePeer.key };
    }, [wanted, key]);
    assert.deepEqual(result, { transport: wanted, length: 3_000, key });
  }
});

test("a page sends the relay its token and the server a connect token", async (t) => {
  const { server, tokenFor } = await startWithTokens(t);
  const relay = relayTokens(t);
  const page = await openSecurePage(t, { game: server.address }, "--token-key", relay.file);
  const client = await page.evaluate(async () => {
    const { createKeyPair } = await import("/dist/secure.js");
    globalThis.identity = await createKeyPair();
    return globalThis.identity.publicKey;
  });
  const connectToken = tokenFor(client, `${server.key}@game`);
  const outcome = (tokens) =>
    page.evaluate(async (tokens) => {
      const { connect } = await import("/dist/secure.js");
      const options = { target: "game", identity: globalThis.identity, timeoutMs: 60_000, ...tokens };
      try {
        const connection = await connect("/ws", options);
        const { key } = connection.securePeer;
        await connection.close();
        return key;
      } catch ({ code }) {
        return code;
      }
    }, tokens);
  // Both tokens are required. A connect token remains unused if the relay refused its connection.
  assert.equal(await outcome({ connectToken }), "relay-closed");
  assert.equal(await outcome({ token: relay.token(), serverKey: server.key }), "invalid-password");
  assert.equal(await outcome({ token: relay.token(), connectToken }), server.key);
});

test("a page connects once with a token for several servers, which names the relay's target as one of them", async (t) => {
  const { server, tokenFor } = await startWithTokens(t);
  const page = await openSecurePage(t, { game: server.address });
  const identity = await page.evaluate(async () => {
    const { createKeyPair } = await import("/dist/secure.js");
    globalThis.identity = await createKeyPair();
    return globalThis.identity.publicKey;
  });
  assert.match(identity, PUBLIC_KEY);
  const connectToken = tokenFor(identity, `${keygen(t).key}@elsewhere`, `${server.key}@game`);
  const codes = await page.evaluate(async (connectToken) => {
    const { connect } = await import("/dist/secure.js");
    const open = () => connect("/ws", { target: "game", connectToken, identity: globalThis.identity, timeoutMs: 60_000 });
    const connection = await open();
    const { code } = await connection.close();
    return [code, await open().then(() => "open", (error) => error.code)];
  }, connectToken);
  assert.deepEqual(codes, ["local", "invalid-token"]);
});
