// The packed npm package, served and built by each bundler, in Chromium, Firefox and WebKit.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
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
import { PAGE, TOOLS } from "./tools.mjs";

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

/** The time limit for a page, which opens eleven connections in sequence after the bundler has built it. */
const PLAY_MS = 180_000;
const LIMIT_MS = 600_000;

/** Cleanup functions that run after all tests. */
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

/** Returns the final title of a page. */
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

/** Checks the result of the connections of a page. */
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
  test(`${name} builds a working page`, { timeout: LIMIT_MS }, async () => {
    const server = await serve(await built(name, tool));
    try {
      await play(server.url);
    } finally {
      await server.stop();
    }
  });
  if (tool.dev !== undefined) {
    test(`${name} serves a working page`, { timeout: LIMIT_MS }, async () => {
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

test("a page without a bundler works with an import map", async () => {
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

/** Writes a project of one script that shows the result of its connection in the page title. */
function write(name, main, script, files = {}) {
  const project = join(folder, name);
  mkdirSync(project);
  writeFileSync(join(project, "package.json"), JSON.stringify({ name: "small", private: true }));
  install(project);
  writeFileSync(join(project, "index.html"), PAGE.replace("main.js", main));
  writeFileSync(join(project, main), script);
  Object.entries(files).forEach(([file, content]) => writeFileSync(join(project, file), JSON.stringify(content)));
  return project;
}

/** Builds a project with a bundler, and returns the title of its page. */
async function titleOfBuilt(tool, project) {
  const out = join(project, "built");
  mkdirSync(out);
  const page = await tool.build(project, out);
  if (page !== undefined) {
    writeFileSync(join(out, "index.html"), page);
  }
  const server = await serve(out);
  try {
    return await titleOf(server.url);
  } finally {
    await server.stop();
  }
}

const OPTIONS = '{ target: "raknet", transport: "websocket", timeoutMs: 60_000 }';

test("parcel builds the entry `.` without configuration", { timeout: LIMIT_MS }, async () => {
  const script = `import { connect } from "rakwire";
    connect(new URLSearchParams(location.search).get("relay"), ${OPTIONS}).then(
      (connection) => (document.title = "done " + connection.transport),
      (error) => (document.title = "failed " + error.stack),
    );`;
  assert.equal(await titleOfBuilt(TOOLS.parcel, write("small", "main.js", script)), "done websocket");
});

/** A page that closes its connection with `await using`. */
const USING = `import { connect } from "rakwire";
  async function play() {
    await using connection = await connect(new URLSearchParams(location.search).get("relay"), ${OPTIONS});
    return () => connection.closed;
  }
  play().then((closed) => closed()).then(
    ({ code }) => (document.title = "done " + code),
    (error) => (document.title = "failed " + error.stack),
  );`;

for (const name of ["vite 6", "vite 7", "vite 8", "webpack", "esbuild", "rollup"]) {
  test(`${name} builds \`await using\``, { timeout: LIMIT_MS }, async () => {
    assert.equal(await titleOfBuilt(TOOLS[name], write(`using-${name.replace(" ", "-")}`, "main.js", USING)), "done local");
  });
}

test("parcel builds `await using` with the settings of the README", { timeout: LIMIT_MS }, async () => {
  const readme = readFileSync(join(PACKAGE, "README.md"), "utf8");
  const [settings] = readme.match(/^\{ "extends": "@parcel\/config-default".*$/m);
  const files = { ".parcelrc": JSON.parse(settings), "tsconfig.json": { compilerOptions: { target: "es2022", module: "esnext" } } };
  const project = write("using-parcel", "main.ts", USING, files);
  // Parcel resolves its configuration from the project, so the project needs a link to the package.
  symlinkSync(join(HERE, "node_modules/@parcel"), join(project, "node_modules/@parcel"));
  assert.equal(await titleOfBuilt(TOOLS.parcel, project), "done local");
});

test("Firefox connects and exchanges messages", { timeout: LIMIT_MS }, async () => {
  const server = await serve(await built("firefox", TOOLS.esbuild));
  const firefox = await openFirefox();
  try {
    check(await firefox.titleOf(withRelay(server.url), /^(done|failed)/));
  } finally {
    await firefox.close();
    await server.stop();
  }
});

test("WebKit connects and exchanges messages", { timeout: LIMIT_MS }, async () => {
  const server = await serve(await built("webkit", TOOLS.esbuild));
  const webkit = await openWebKit();
  try {
    check(await webkit.titleOf(withRelay(server.url), /^(done|failed)/));
  } finally {
    await webkit.close();
    await server.stop();
  }
});

test("publint and arethetypeswrong find no problems", () => {
  const bin = join(HERE, "node_modules/.bin");
  for (const [program, ...args] of [["publint", "run", join(folder, filename), "--strict"], ["attw", join(folder, filename), "--profile", "esm-only", "--exclude-entrypoints", "./worker-script.js", "./voice-worklet.js", "./rakwire.wasm", "./raknet.wasm", "./game-protocol.wasm", "./secure.wasm", "./server.wasm"]]) {
    try {
      execFileSync(join(bin, program), args, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
    } catch (error) {
      assert.fail(`${program}: ${error.stdout}${error.stderr}`);
    }
  }
});
