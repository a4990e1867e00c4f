// The package as a page loads it without a bundler, in Chromium, through a real relay, with real servers.

import assert from "node:assert/strict";
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { test } from "node:test";

import { openPage } from "./browser.mjs";
import { PROTOCOLS } from "./protocols.mjs";
import { startEcho, startRelay } from "./support.mjs";

const PACKAGE = fileURLToPath(new URL("..", import.meta.url));

/** A page of a relay that serves the package, too. */
async function servePage(t, targets) {
  const folder = mkdtempSync(join(tmpdir(), "rakwire-page-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  for (const part of ["dist", "pkg"]) {
    cpSync(join(PACKAGE, part), join(folder, part), { recursive: true });
  }
  writeFileSync(join(folder, "index.html"), "<!doctype html><title>rakwire</title>");
  const relay = await startRelay(t, targets, "--serve", folder);
  const page = await openPage(t);
  await page.goto(`http://${relay.address}/`);
  return page;
}

for (const protocol of PROTOCOLS) {
  test(`${protocol.name}: a page gets every message once, by listeners and by iteration`, async (t) => {
    const echo = await startEcho(t, ...protocol.echo);
    const page = await servePage(t, { game: echo.address });
    const result = await page.evaluate(async (options) => {
      const { connect } = await import("/dist/index.js");
      const connection = await connect("/ws", { target: "game", memory: { blocks: 512 }, ...options });
      const heard = [];
      const note = ({ bytes }) => heard.push(bytes[1]);
      const first = new Promise((resolve) => {
        connection.addEventListener("message", ({ message }) => resolve(note(message)), { once: true });
      });
      for (let number = 0; number < 200; number++) {
        await connection.ready({ length: 100 });
        connection.send(new Uint8Array(100).fill(0xfe).fill(number, 1), { reliability: "reliable" });
      }
      await first;
      for await (const message of connection) {
        note(message);
        if (heard.length === 100) {
          break;
        }
      }
      connection.addEventListener("message", ({ message }) => note(message));
      while (heard.length < 200) {
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
      await connection[Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose")]();
      const { messagesQueued, messagesDiscarded } = connection.stats();
      return { heard, code: (await connection.closed).code, messagesQueued, messagesDiscarded };
    }, protocol.options);
    const heard = result.heard.sort((a, b) => a - b);
    assert.deepEqual(heard, Array.from({ length: 200 }, (_, number) => number));
    assert.deepEqual({ ...result, heard: [] }, { heard: [], code: "local", messagesQueued: 0, messagesDiscarded: 0 });
  });
}

test("a page lists servers without the WebAssembly", async (t) => {
  const [one, two] = [await startEcho(t, "--advertise", "one"), await startEcho(t, "--advertise", "two")];
  const page = await servePage(t, { one: one.address, two: two.address, gone: "127.0.0.1:9" });
  const loaded = [];
  page.on("request", (request) => loaded.push(new URL(request.url()).pathname));
  const found = await page.evaluate(async () => {
    const { discover } = await import("/dist/ping.js");
    const pongs = await discover("/ws", { targets: ["one", "gone", "two"], timeoutMs: 1500 });
    return pongs.map(({ target, data, guid }) => [target, new TextDecoder().decode(data), typeof guid]);
  });
  assert.deepEqual(found, [["one", "one", "bigint"], ["two", "two", "bigint"]]);
  assert.ok(loaded.includes("/dist/ping.js") && !loaded.some((path) => path.startsWith("/pkg/")), loaded.join(" "));
});
