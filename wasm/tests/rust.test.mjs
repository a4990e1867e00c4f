// The Rust API for browsers: the example `echo` in Chromium, through a real relay, to real servers.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { test } from "node:test";

import { openPage } from "./browser.mjs";
import { startCpp, startEcho, startRelay } from "./support.mjs";

const CRATE = fileURLToPath(new URL("..", import.meta.url));
const WASM = "wasm32-unknown-unknown";

function buildExample(folder) {
  const run = (program, ...args) => execFileSync(program, args, { cwd: CRATE, encoding: "utf8" });
  const { target_directory: target } = JSON.parse(run("cargo", "metadata", "--no-deps", "--format-version", "1"));
  const features = ["--no-default-features", "--features", "web"];
  run("cargo", "build", "--quiet", "-p", "rakwire-wasm", ...features, "--example", "echo", "--target", WASM);
  run("wasm-bindgen", "--target", "web", "--out-dir", folder, join(target, WASM, "debug/examples/echo.wasm"));
  writeFileSync(join(folder, "index.html"), "<!doctype html><title>echo</title>");
}

test("a Rust program exchanges messages with our server and with the C++ one", { timeout: 600_000 }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "rakwire-rust-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  buildExample(folder);
  const [echo, cpp] = [await startEcho(t), await startCpp(t)];
  const relay = await startRelay(t, { game: echo.address, cpp: cpp.address, gone: "127.0.0.1:9" }, "--serve", folder);
  const page = await openPage(t);
  await page.goto(`http://${relay.address}/`);
  const play = (target) =>
    page.evaluate(async (name) => {
      const { default: init, play } = await import("/echo.js");
      await init();
      const url = `ws://${location.host}/ws`;
      return play(url, name).catch((error) => `failed: ${error.message}`);
    }, target);

  await t.test("our echo server", async () => assert.equal(await play("game"), "echoed 6 and 150000 bytes"));
  await t.test("a C++ server", async () => assert.equal(await play("cpp"), "echoed 6 and 150000 bytes"));
  await t.test("an unreachable server", async () => assert.equal(await play("gone"), "failed: the server does not answer"));
  await t.test("an unknown target", async () => {
    assert.match(await play("missing"), /^failed: relay closed: unknown target 'missing'.*\(code 4404\)$/);
  });
});

test("a Rust program uses the Game Protocol", { timeout: 600_000 }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "rakwire-rust-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  buildExample(folder);
  const echo = await startEcho(t, "--protocol", "game");
  const relay = await startRelay(t, { game: echo.address }, "--serve", folder);
  const page = await openPage(t);
  await page.goto(`http://${relay.address}/`);
  const played = await page.evaluate(async () => {
    const { default: init, play_game } = await import("/echo.js");
    await init();
    return play_game(`ws://${location.host}/ws`, "game").catch((error) => `failed: ${error.message}`);
  });
  assert.equal(played, "echoed 5 and 129024 bytes");
});
