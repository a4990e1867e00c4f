// The packed package in Bun and Deno, as a client of a relay and over UDP.

import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { fileURLToPath } from "node:url";
import { after, before, test } from "node:test";

import { connect, createKeyPair } from "../../dist/node/secure.js";
import { createTokenKey } from "../../dist/tokens.js";
import { folderOf, startSecureEcho } from "../keys.mjs";
import { startEcho, startRelay } from "../support.mjs";

const BIN = fileURLToPath(new URL("node_modules/.bin", import.meta.url));
const PACKAGE = fileURLToPath(new URL("../..", import.meta.url));
/** A script of a backend that prints a connect token. */
const BACKEND = `
import { createToken } from "rakwire/tokens";

console.log(createToken({ ...JSON.parse(process.argv[2]), userId: 42n, expires: new Date(Date.now() + 60_000) }));
process.exit(0);
`;
/** The command that runs a script in each runtime. */
const RUNTIMES = { bun: ["run"], deno: ["run", "--no-prompt", "--allow-net", "--allow-read", "--allow-env"] };
const SCRIPT = `
import { connect } from "rakwire";
import { ByteReader, ByteWriter } from "rakwire/codec";
import { connect as connectSecure } from "rakwire/secure";

const said = [];
for (const [protocol, urls] of Object.entries(JSON.parse(process.argv[2]))) {
  for (const url of urls) {
    const options = { target: protocol, timeoutMs: 60_000 };
    const connection = await (protocol === "secure"
      ? connectSecure(url, { ...options, serverKey: "any" })
      : connect(url, { ...options, protocol }));
    for (const length of [1, 2_000, 100_000]) {
      connection.send(new Uint8Array(length).fill(0xfe));
      const { bytes } = await connection.receive();
      said.push(bytes.length);
    }
    connection.send(new ByteWriter().u8(0xfe).text("snow").finish());
    const reader = new ByteReader((await connection.receive()).bytes);
    said.push([reader.u8(), reader.text()]);
    const { code } = await connection.close();
    said.push(code);
  }
}
console.log(JSON.stringify(said));
process.exit(0);
`;

let folder;

before(() => {
  folder = mkdtempSync(join(tmpdir(), "rakwire-runtimes-"));
  writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "game", private: true, type: "module" }));
  for (const [name, script] of Object.entries({ game: SCRIPT, backend: BACKEND })) {
    writeFileSync(join(folder, `${name}.mjs`), `import process from "node:process";\n${script}`);
  }
  const [{ filename }] = JSON.parse(execFileSync("npm", ["pack", "--json", "--pack-destination", folder], { cwd: PACKAGE, encoding: "utf8" }));
  execFileSync("npm", ["install", "--offline", "--no-audit", "--no-fund", join(folder, filename)], { cwd: folder, stdio: "ignore" });
});

after(() => rmSync(folder, { recursive: true, force: true }));

async function run(runtime, script, argument) {
  const args = [...RUNTIMES[runtime], script, argument];
  const { stdout } = await promisify(execFile)(join(BIN, runtime), args, { cwd: folder, timeout: 240_000 });
  return stdout;
}

for (const runtime of Object.keys(RUNTIMES)) {
  test(`${runtime} connects to a relay and directly to servers`, { timeout: 300_000 }, async (t) => {
    const [raknet, game] = [await startEcho(t), await startEcho(t, "--protocol", "game")];
    const secure = await startSecureEcho(t);
    const relay = await startRelay(t, { raknet: raknet.address, game: game.address, secure: secure.address });
    const by = (server) => [`ws://${relay.address}/ws`, `udp://${server.address}`];
    const urls = JSON.stringify({ raknet: by(raknet), game: by(game), secure: by(secure) });
    const stdout = await run(runtime, "game.mjs", urls);
    assert.deepEqual(JSON.parse(stdout), Array(6).fill([1, 2_000, 100_000, [0xfe, "snow"], "local"]).flat());
  });
}

test("deno creates connect tokens", { timeout: 300_000 }, async (t) => {
  const [file, key] = [join(folderOf(t), "token.key"), createTokenKey()];
  writeFileSync(file, key, { mode: 0o600 });
  const server = await startSecureEcho(t, "--token-key", file);
  const identity = await createKeyPair();
  const options = { key, clientKey: identity.publicKey, servers: [{ key: server.key, name: server.address }] };
  const connectToken = await run("deno", "backend.mjs", JSON.stringify(options));
  const connection = await connect(server.url, { connectToken, identity, timeoutMs: 60_000 });
  assert.equal((await connection.close()).code, "local");
});
