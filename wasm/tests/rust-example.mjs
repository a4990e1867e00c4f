// Builds the Rust example `echo` for browsers, and opens pages with it.

import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { openPage } from "./browser.mjs";
import { startRelay } from "./support.mjs";

const CRATE = fileURLToPath(new URL("..", import.meta.url));
const WASM = "wasm32-unknown-unknown";

/** Builds the example into a folder, with an empty page. */
export function buildExample(folder) {
  const run = (program, ...args) => execFileSync(program, args, { cwd: CRATE, encoding: "utf8" });
  const { target_directory: target } = JSON.parse(run("cargo", "metadata", "--no-deps", "--format-version", "1"));
  const features = ["--no-default-features", "--features", "secure"];
  run("cargo", "build", "--quiet", "-p", "rakwire-wasm", ...features, "--example", "echo", "--target", WASM);
  run("wasm-bindgen", "--target", "web", "--out-dir", folder, join(target, WASM, "debug/examples/echo.wasm"));
  writeFileSync(join(folder, "index.html"), "<!doctype html><title>echo</title>");
}

let built;

/** Returns a folder with the example, which is built once per test file. */
function builtExample() {
  if (built === undefined) {
    const folder = mkdtempSync(join(tmpdir(), "rakwire-rust-"));
    process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
    buildExample(folder);
    built = folder;
  }
  return built;
}

/** Opens a page of a relay that also serves the example. */
export async function openExamplePage(t, targets, ...more) {
  const relay = await startRelay(t, targets, "--serve", builtExample(), ...more);
  const page = await openPage(t);
  await page.goto(`http://${relay.address}/`);
  return { page, relay };
}
