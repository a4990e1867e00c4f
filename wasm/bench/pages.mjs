// Opens an empty page next to the built package in a browser.

import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { launch } from "../tests/browser.mjs";
import { serve } from "../tests/bundlers/serve.mjs";

const PACKAGE = fileURLToPath(new URL("..", import.meta.url));

/** Calls `use` with a browser and the URL of the page. Closes the browser and removes the page afterwards. */
export async function withBrowser(use) {
  const folder = mkdtempSync(join(tmpdir(), "rakwire-bench-"));
  for (const part of ["dist", "pkg"]) {
    cpSync(join(PACKAGE, part), join(folder, part), { recursive: true });
  }
  writeFileSync(join(folder, "index.html"), "<!doctype html><title>rakwire</title>");
  const pages = await serve(folder);
  const browser = await launch();
  try {
    return await use(browser, pages.url);
  } finally {
    await browser.close();
    await pages.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}
