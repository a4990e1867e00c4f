// The page of the guide in Chromium, with the server and the bot of the guide, through a real relay.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";

import { openPage } from "./browser.mjs";
import { serve } from "./bundlers/serve.mjs";
import { program, start, startPluginExample, startRelay } from "./support.mjs";

const PACKAGE = fileURLToPath(new URL("..", import.meta.url));

/** Bundles the page for a relay, and serves it. */
async function servePage(t, relay) {
  const folder = mkdtempSync(join(tmpdir(), "rakwire-guide-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const source = readFileSync(join(PACKAGE, "tests/fixture/guide-tag.ts"), "utf8");
  assert.ok(source.includes("127.0.0.1:8080"));
  writeFileSync(join(folder, "tag.ts"), source.replace("127.0.0.1:8080", relay.address));
  writeFileSync(join(folder, "main.ts"), 'import { play } from "./tag.js";\nplay("zoe", document.body);\n');
  const alias = { rakwire: join(PACKAGE, "dist/index.js") };
  await build({ entryPoints: [join(folder, "main.ts")], bundle: true, format: "esm", target: "es2022", alias, outdir: folder });
  writeFileSync(join(folder, "index.html"), '<!doctype html><body><script type="module" src="main.js"></script>');
  const server = await serve(folder);
  t.after(() => server.stop());
  return server.url;
}

test("the page of the guide plays tag with a bot", async (t) => {
  const server = await startPluginExample(t, "guide_tag", "server", "127.0.0.1:0");
  const examples = join(dirname(program("RAKWIRE_BIN", "Build all with `cargo build --workspace --bins --examples`.")), "examples");
  await start(t, "the bot", join(examples, "guide_tag"), ["bot", server.address, "robin"], /(Welcome)/);
  const url = await servePage(t, await startRelay(t, { game: server.address }));
  const page = await openPage(t);
  await page.goto(url);
  const shows = (line) => page.waitForFunction((line) => document.body.innerText.includes(line), line);
  await shows("you are player 1");
  await shows("robin has joined");
  await shows("zoe has joined");
  // The bot joined first, so it is "it" and chases the page's player. The page shows that the player was caught, and
  // the keys move the player.
  await shows("zoe is it");
  const row = (letter) => page.waitForFunction(
    ([letter]) => document.querySelector("pre").innerText.split("\n")[0].toLowerCase().includes(letter), [letter]);
  await page.keyboard.down("ArrowUp");
  await row("z");
});
