// The packed package in each bundler, as it serves and as it builds, in Chromium and in Firefox.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { after, before, test } from "node:test";

import { launch } from "../browser.mjs";
import { openFirefox } from "../firefox.mjs";
import { startSecureEcho } from "../keys.mjs";
import { startEcho, startRelay } from "../support.mjs";
import { openWebKit } from "../webkit.mjs";
import { serve } from "./serve.mjs";
import { TOOLS } from "./tools.mjs";

const HERE = fileURLToPath(new URL(".", import.meta.url));
const PACKAGE = fileURLToPath(new URL("../..", import.meta.url));
const EXPECTED = {
  ".": "7 snow local",
  ". game": "7 snow local",
  "./raknet": "7 snow local",
  "./game-protocol": "7 snow local",
  "./secure": "7 snow local",
  "./slim": "7 snow local",
  "./worker": "7 snow local",
  "./worker game": "7 snow local",
  "./worker secure": "7 snow local",
  "./calls ./files": "42 snow flake",
  "./voice": "7",
};

/** A page makes eleven connections one after the other, and a tool builds it before. */
const PLAY_MS = 180_000;
const LIMIT_MS = 600_000;

/** What is stopped at the end. */
const stops = [];
let folder;
let root;
let filename;
let relay;
let browser;

before(async () => {
  folder = mkdtempSync(join(tmpdir(), "rakwire-bundlers-"));
  root = join(folder, "page");
  cpSync(join(HERE, "fixture"), root, { recursive: true });
  writeFileSync(join(root, "package.json"), JSON.stringify({ name: "page", private: true, type: "module", "@parcel/resolver-default": { packageExports: true } }));
  ([{ filename }] = JSON.parse(execFileSync("npm", ["pack", "--json", "--pack-destination", folder], { cwd: PACKAGE, encoding: "utf8" })));
  install(root);
  const context = { after: (stop) => stops.push(stop) };
  const [raknet, game] = [await startEcho(context), await startEcho(context, "--protocol", "game")];
  const secure = await startSecureEcho(context);
  relay = await startRelay(context, { raknet: raknet.address, game: game.address, secure: secure.address });
  browser = await launch();
});

after(async () => {
  await browser?.close();
  stops.forEach((stop) => stop());
  rmSync(folder, { recursive: true, force: true });
});

/** Installs the packed package in a project. */
function install(project) {
  execFileSync("npm", ["install", "--offline", "--no-audit", "--no-fund", join(folder, filename)], { cwd: project, stdio: "ignore" });
}

const withRelay = (url) => `${url}?relay=${encodeURIComponent(`ws://${relay.address}/ws`)}`;

function check(title) {
  assert.match(title, /^done /);
  assert.deepEqual(JSON.parse(title.slice("done ".length)), EXPECTED);
}

/** What a page says of itself in the end. */
async function titleOf(url) {
  const page = await browser.newPage();
  const errors = [];
  page.on("pageerror", (error) => errors.push(error.message));
  try {
    await page.goto(withRelay(url));
    await page.waitForFunction(() => /^(done|failed)/.test(document.title), null, { timeout: PLAY_MS }).catch((error) => errors.push(error.message));
    assert.deepEqual(errors, []);
    return await page.title();
  } finally {
    await page.close();
  }
}

/** Checks what a page says of its connections. */
async function play(url) {
  check(await titleOf(url));
}

async function built(name, tool) {
  const out = join(folder, name.replace(" ", "-"));
  mkdirSync(out, { recursive: true });
  writeFileSync(join(root, "wasm.js"), tool.wasm);
  const page = await tool.build(root, out);
  if (page !== undefined) {
    writeFileSync(join(out, "index.html"), page);
  }
  return out;
}

for (const [name, tool] of Object.entries(TOOLS)) {
  test(`${name} builds a page that plays`, { timeout: LIMIT_MS }, async () => {
    const server = await serve(await built(name, tool));
    try {
      await play(server.url);
    } finally {
      await server.stop();
    }
  });
  if (tool.dev !== undefined) {
    test(`${name} serves a page that plays`, { timeout: LIMIT_MS }, async () => {
      writeFileSync(join(root, "wasm.js"), tool.wasm);
      const server = await tool.dev(root);
      try {
        if (server.page !== undefined) {
          writeFileSync(join(root, server.page[0]), server.page[1]);
        }
        await play(server.url);
      } finally {
        await server.stop();
      }
    });
  }
}

test("a page without a bundler plays, by an import map", async () => {
  const names = ["calls", "codec", "files", "game-protocol", "raknet", "secure", "slim", "voice", "worker"];
  const entry = (name) => `/node_modules/rakwire/dist/${name}.js`;
  const imports = Object.fromEntries(names.map((name) => [`rakwire/${name}`, entry(name === "codec" ? "codec/index" : name)]));
  const map = JSON.stringify({ imports: { rakwire: entry("index"), ...imports } });
  const page = `<!doctype html><meta charset="utf-8"><title>rakwire</title><script type="importmap">${map}</script><script type="module" src="./main.js"></script>`;
  writeFileSync(join(root, "plain.html"), page);
  cpSync(join(HERE, "fixture/wasm.js"), join(root, "wasm.js"));
  const server = await serve(root);
  try {
    await play(`${server.url}plain.html`);
  } finally {
    await server.stop();
  }
});

test("parcel builds `.` without any setting", { timeout: LIMIT_MS }, async () => {
  const small = join(folder, "small");
  mkdirSync(small);
  writeFileSync(join(small, "package.json"), JSON.stringify({ name: "small", private: true }));
  install(small);
  writeFileSync(join(small, "index.html"), '<!doctype html><meta charset="utf-8"><title>small</title><script type="module" src="main.js"></script>');
  const script = `import { connect } from "rakwire";
    connect(new URLSearchParams(location.search).get("relay"), { target: "raknet", transport: "websocket", timeoutMs: 60_000 }).then(
      (connection) => (document.title = "done " + connection.transport),
      (error) => (document.title = "failed " + error.stack),
    );`;
  writeFileSync(join(small, "main.js"), script);
  const out = join(folder, "small-built");
  await TOOLS.parcel.build(small, out);
  const server = await serve(out);
  try {
    assert.equal(await titleOf(server.url), "done websocket");
  } finally {
    await server.stop();
  }
});

test("Firefox plays", { timeout: LIMIT_MS }, async () => {
  const server = await serve(await built("firefox", TOOLS.esbuild));
  const firefox = await openFirefox();
  try {
    check(await firefox.titleOf(withRelay(server.url), /^(done|failed)/));
  } finally {
    await firefox.close();
    await server.stop();
  }
});

test("WebKit plays", { timeout: LIMIT_MS }, async () => {
  const server = await serve(await built("webkit", TOOLS.esbuild));
  const webkit = await openWebKit();
  try {
    check(await webkit.titleOf(withRelay(server.url), /^(done|failed)/));
  } finally {
    await webkit.close();
    await server.stop();
  }
});

test("publint and arethetypeswrong find nothing", () => {
  const bin = join(HERE, "node_modules/.bin");
  for (const [program, ...args] of [["publint", "run", join(folder, filename), "--strict"], ["attw", join(folder, filename), "--profile", "esm-only", "--exclude-entrypoints", "./worker-script.js", "./voice-worklet.js", "./rakwire.wasm", "./raknet.wasm", "./game-protocol.wasm", "./secure.wasm", "./server.wasm"]]) {
    try {
      execFileSync(join(bin, program), args, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
    } catch (error) {
      assert.fail(`${program}: ${error.stdout}${error.stderr}`);
    }
  }
});
