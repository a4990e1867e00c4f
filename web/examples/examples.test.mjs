// The built examples in Chromium, with a real relay and a real server.

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { before, test } from "node:test";

import { SOFTWARE_WEBGL, launch } from "../../wasm/tests/browser.mjs";
import { serve } from "../../wasm/tests/bundlers/serve.mjs";
import { startEcho, startRelay } from "../../wasm/tests/support.mjs";

const HERE = fileURLToPath(new URL(".", import.meta.url));
/** The folder for a picture of each example. */
const PICTURES = fileURLToPath(new URL("../../target/examples", import.meta.url));
const ECHOES = 20;
/** Installs offline, so the test fails if a package that this file does not pack is needed. */
const INSTALL = ["install", "--offline", "--no-audit", "--no-fund"];
/** Prints only npm's errors. */
const QUIET = ["ignore", "ignore", "inherit"];

before(() => {
  execFileSync("npm", ["run", "build"], { cwd: HERE, stdio: ["ignore", "ignore", "inherit"] });
  mkdirSync(PICTURES, { recursive: true });
});

/** Opens a page that receives echoes of a server, and saves a picture of it. */
async function play(t, folder, path, picture) {
  const echo = await startEcho(t);
  const relay = await startRelay(t, { echo: echo.address });
  const pages = await serve(folder);
  t.after(() => pages.stop());
  const browser = await launch(SOFTWARE_WEBGL);
  t.after(() => browser.close());
  const page = await browser.newPage({ viewport: { width: 700, height: 480 } });
  page.setDefaultTimeout(120_000);
  const errors = [];
  page.on("pageerror", (error) => errors.push(error.message));
  const address = new URL(`${path}?relay=${encodeURIComponent(`ws://${relay.address}/ws`)}`, pages.url);
  await page.goto(address.href);
  const hasEchoes = (count) => Number(document.body.dataset.echoes ?? 0) >= count;
  await page.waitForFunction(hasEchoes, ECHOES).catch((error) => errors.push(error.message));
  await page.screenshot({ path: `${PICTURES}/${picture}.png` });
  assert.deepEqual(errors, []);
  const size = await page.evaluate(() => {
    const { width, height } = document.querySelector("#stage canvas");
    return width * height;
  });
  assert.ok(size > 0, "the canvas of the page is empty");
}

for (const example of ["canvas", "phaser", "pixi", "three"]) {
  test(`${example}: the page receives its player's position from a server`, { timeout: 300_000 }, (t) =>
    play(t, `${HERE}dist`, `${example}/index.html`, example));
}

/** Packs a package with `npm pack`, and returns the path of the file. */
function pack(folder, destination) {
  const args = ["pack", "--json", "--pack-destination", destination];
  const [{ filename }] = JSON.parse(execFileSync("npm", args, { cwd: folder, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }));
  return join(destination, filename);
}

/**
 * Removes the compiler and the bundler from the project's package, and returns their names. npm queries the registry
 * for every listed package, even those that it does not install.
 */
function withoutTools(project) {
  const file = join(project, "package.json");
  const { devDependencies, ...manifest } = JSON.parse(readFileSync(file, "utf8"));
  assert.equal(manifest.name, "my-game");
  writeFileSync(file, JSON.stringify(manifest));
  return Object.keys(devDependencies);
}

/** Creates a folder with `create-rakwire` installed. Returns a function that runs it. */
function installCreator(t) {
  const folder = mkdtempSync(join(tmpdir(), "rakwire-create-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, "package.json"), "{}");
  const file = pack(fileURLToPath(new URL("../create", import.meta.url)), folder);
  execFileSync("npm", [...INSTALL, file], { cwd: folder, stdio: QUIET });
  const create = (...args) => {
    const { status, stderr } = spawnSync(join(folder, "node_modules/.bin/create-rakwire"), args, { cwd: folder, encoding: "utf8" });
    return { status, stderr };
  };
  return { folder, create };
}

test("a project of create-rakwire builds and connects to a server", { timeout: 300_000 }, async (t) => {
  const { folder, create } = installCreator(t);
  const rakwire = pack(fileURLToPath(new URL("../../wasm", import.meta.url)), folder);
  assert.deepEqual(create("My Game", "--package", rakwire), { status: 0, stderr: "" });
  const project = join(folder, "My Game");
  const tools = withoutTools(project);
  execFileSync("npm", INSTALL, { cwd: project, stdio: QUIET });
  // Links the compiler and the bundler of the examples, instead of fetching them with npm.
  for (const tool of tools) {
    symlinkSync(join(HERE, "node_modules", tool), join(project, "node_modules", tool));
  }
  for (const [tool, ...args] of [["tsc"], ["vite", "build"]]) {
    execFileSync(join(HERE, "node_modules/.bin", tool), args, { cwd: project, stdio: ["ignore", "ignore", "inherit"] });
  }
  await play(t, join(project, "dist"), "index.html", "create");
});

test("create-rakwire reports each error in one line", (t) => {
  const { folder, create } = installCreator(t);
  const refused = [
    [[], /expected the name of one folder/],
    [["one", "two"], /expected the name of one folder/],
    [["--fast", "game"], /--fast/],
    [["."], /is not empty/],
    [["game", "--package", "rakwire.tgz"], /--package: rakwire\.tgz does not exist/],
  ];
  for (const [args, words] of refused) {
    const { status, stderr } = create(...args);
    assert.equal(status, 2, stderr);
    assert.match(stderr, words);
  }
  assert.equal(existsSync(join(folder, "game")), false);
});
