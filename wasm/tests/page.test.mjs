// The package in a page without a bundler, in Chromium, through a real relay, with real servers.

import assert from "node:assert/strict";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { test } from "node:test";

import { build } from "esbuild";

import { openPage } from "./browser.mjs";
import { serve } from "./bundlers/serve.mjs";
import { PROTOCOLS } from "./protocols.mjs";
import { startEcho, startRelay } from "./support.mjs";

const PACKAGE = fileURLToPath(new URL("..", import.meta.url));

/** Opens a page of a relay that also serves the package. */
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
  test(`${protocol.name}: in a page, every message is delivered once, to a listener or to iteration`, async (t) => {
    const echo = await startEcho(t, ...protocol.echo);
    const page = await servePage(t, { game: echo.address });
    const result = await page.evaluate(async (options) => {
      const { connect } = await import("/dist/index.js");
      const connection = await connect("/ws", { target: "game", memory: { blocks: 512 }, timeoutMs: 60_000, ...options });
      const received = [];
      const note = ({ bytes }) => received.push(bytes[1]);
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
        if (received.length === 100) {
          break;
        }
      }
      connection.addEventListener("message", ({ message }) => note(message));
      while (received.length < 200) {
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
      await connection[Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose")]();
      const { messagesQueued, messagesDiscarded } = connection.stats();
      return { received, code: (await connection.closed).code, messagesQueued, messagesDiscarded };
    }, protocol.options);
    const received = result.received.sort((a, b) => a - b);
    assert.deepEqual(received, Array.from({ length: 200 }, (_, number) => number));
    assert.deepEqual({ ...result, received: [] }, { received: [], code: "local", messagesQueued: 0, messagesDiscarded: 0 });
  });
}

test("a page lists servers without loading the WebAssembly", async (t) => {
  const [one, two] = [await startEcho(t, "--advertise", "one"), await startEcho(t, "--advertise", "two")];
  const page = await servePage(t, { one: one.address, two: two.address, gone: "127.0.0.1:9" });
  const loaded = [];
  page.on("request", (request) => loaded.push(new URL(request.url()).pathname));
  const found = await page.evaluate(async () => {
    const { discover } = await import("/dist/ping.js");
    let pongs;
    // On a busy machine a server may answer too late, so it is pinged again with a longer timeout.
    for (const timeoutMs of [1_500, 5_000, 30_000]) {
      pongs = await discover("/ws", { targets: ["one", "gone", "two"], timeoutMs });
      if (pongs.length === 2) {
        break;
      }
    }
    return pongs.map(({ target, data, guid }) => [target, new TextDecoder().decode(data), typeof guid]);
  });
  assert.deepEqual(found, [["one", "one", "bigint"], ["two", "two", "bigint"]]);
  assert.ok(loaded.includes("/dist/ping.js") && !loaded.some((path) => path.startsWith("/pkg/")), loaded.join(" "));
});

test("the page of the quickstart shows the documented output", async (t) => {
  const echo = await startEcho(t);
  const relay = await startRelay(t, { game: echo.address });
  const source = readFileSync(join(PACKAGE, "tests/fixture/quickstart.ts"), "utf8");
  const address = "127.0.0.1:8080";
  assert.ok(source.includes(address));
  const folder = mkdtempSync(join(tmpdir(), "rakwire-quickstart-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, "quickstart.ts"), source.replace(address, relay.address));
  const guide = readFileSync(join(PACKAGE, "../docs/quickstart-page.md"), "utf8");
  const [, behind] = /this line at its end:\n\n`(.*)`$/m.exec(guide);
  writeFileSync(join(folder, "main.ts"), `import { play } from "./quickstart.js";\n${behind}\n`);
  const alias = { rakwire: join(PACKAGE, "dist/index.js") };
  await build({ entryPoints: [join(folder, "main.ts")], bundle: true, format: "esm", target: "es2022", alias, outdir: folder });
  writeFileSync(join(folder, "index.html"), '<!doctype html><body><script type="module" src="main.js"></script>');
  // Served from a port other than the relay's, like a page of a development server.
  const server = await serve(folder);
  t.after(() => server.stop());

  const [, shown] = /which shows:\n\n```text\n([^`]*)```/.exec(guide);
  const lines = shown.trimEnd().split("\n");
  const page = await openPage(t);
  let found = [];
  // On a busy machine a pong may arrive too late for the page.
  for (let time = 0; time < 3 && found.length !== lines.length; time++) {
    await page.goto(server.url);
    await page.waitForFunction((last) => document.body.innerText.includes(last), lines.at(-1));
    found = (await page.innerText("body")).trimEnd().split("\n");
  }
  const withoutTimes = (line) => line.replace(/\b\d+ ms$/, "… ms");
  assert.deepEqual(found.map(withoutTimes), lines);
});
