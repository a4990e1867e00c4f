// A page in Chromium that has the package and the table of failures.

import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { openPage } from "../browser.mjs";
import { serve } from "../bundlers/serve.mjs";

const PACKAGE = fileURLToPath(new URL("../..", import.meta.url));

/** Opens it; `control` is what it can do to its way. */
export async function openTablePage(t, control) {
  const folder = mkdtempSync(join(tmpdir(), "rakwire-failures-page-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  for (const part of ["dist", "pkg"]) {
    cpSync(join(PACKAGE, part), join(folder, part), { recursive: true });
  }
  cpSync(fileURLToPath(new URL("table.mjs", import.meta.url)), join(folder, "table.mjs"));
  writeFileSync(join(folder, "index.html"), "<!doctype html><title>rakwire</title>");
  const server = await serve(folder);
  t.after(() => server.stop());
  const page = await openPage(t);
  await page.exposeFunction("control", (what) => control[what]());
  await page.goto(server.url);
  return page;
}
