// A page in Chromium with the package, without a bundler, and a relay.

import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { openPage } from "./browser.mjs";
import { serve } from "./bundlers/serve.mjs";
import { startRelay } from "./support.mjs";

const PACKAGE = fileURLToPath(new URL("..", import.meta.url));

/**
 * Starts a relay for these targets, and opens a page that can import the package. The page has the HTTP headers
 * `headers`, and Chromium the flags `flags`.
 */
export async function openWith(t, targets, headers, flags) {
  const folder = mkdtempSync(join(tmpdir(), "rakwire-page-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  for (const part of ["dist", "pkg"]) {
    cpSync(join(PACKAGE, part), join(folder, part), { recursive: true });
  }
  writeFileSync(join(folder, "index.html"), "<!doctype html><title>rakwire</title>");
  const server = await serve(folder, headers);
  t.after(() => server.stop());
  const relay = await startRelay(t, targets);
  const page = await openPage(t, {}, flags);
  await page.goto(server.url);
  return { page, relay, url: `ws://${relay.address}/ws` };
}
