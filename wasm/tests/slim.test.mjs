// The entry without embedded WebAssembly, with each kind of source. Each test imports a copy of the module, because a
// module uses only its first source.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { listen } from "rakwire/server";

import { fails, LIMIT_MS, pattern } from "./support.mjs";

const FILE = new URL("../pkg/raknet.wasm", import.meta.url);
const bytes = readFileSync(FILE);
const answer = (type) => new Response(bytes, { headers: { "Content-Type": type } });

const SOURCES = {
  "a URL": () => FILE,
  "the text of a URL": () => FILE.href,
  "bytes": () => new Uint8Array(bytes),
  "a buffer": () => new Uint8Array(bytes).buffer,
  "a response": () => answer("application/wasm"),
  "a response of another type": () => answer("application/octet-stream"),
  "the promise of a response": () => Promise.resolve(answer("application/wasm")),
  "a module": () => new WebAssembly.Module(bytes),
};

/** Another instance of the entry. */
const load = (name) => import(`../dist/slim.js?${encodeURIComponent(name)}`);

test("a connection opens with each kind of WebAssembly source", async (t) => {
  const server = await listen({ host: "127.0.0.1" });
  t.after(() => server.close());
  const url = `udp://127.0.0.1:${server.address.port}`;
  for (const [name, source] of Object.entries(SOURCES)) {
    for (const byOption of [false, true]) {
      const { connect, init } = await load(`${name} ${byOption}`);
      if (!byOption) {
        await init(source());
      }
      const [connection, accepted] = await Promise.all([
        connect(url, { timeoutMs: LIMIT_MS, ...(byOption && { wasm: source() }) }),
        server.accept({ signal: AbortSignal.timeout(LIMIT_MS) }),
      ]);
      connection.send(pattern(100));
      assert.deepEqual((await accepted.receive()).bytes, pattern(100), name);
      await connection.close();
    }
  }
});

test("loading an invalid WebAssembly fails, and another source may be loaded afterwards", async () => {
  const { connect, init } = await load("errors");
  await assert.rejects(connect("udp://127.0.0.1:9"), fails("wasm-unavailable", /pass its URL/));
  await assert.rejects(init(new Response("gone", { status: 404 })), fails("wasm-unavailable", /404/));
  await assert.rejects(init(new Uint8Array(8)), fails("wasm-unavailable", /loaded/));
  await init(new Uint8Array(bytes));
});
