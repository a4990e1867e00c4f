// A page that has the package and the table of failures.

import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { serve } from "../bundlers/serve.mjs";

const PACKAGE = fileURLToPath(new URL("../..", import.meta.url));

/** Serves it, and returns its URL. */
export async function serveTable(t) {
  const folder = mkdtempSync(join(tmpdir(), "rakwire-failures-page-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  for (const part of ["dist", "pkg"]) {
    cpSync(join(PACKAGE, part), join(folder, part), { recursive: true });
  }
  cpSync(fileURLToPath(new URL("table.mjs", import.meta.url)), join(folder, "table.mjs"));
  writeFileSync(join(folder, "index.html"), "<!doctype html><title>rakwire</title>");
  const server = await serve(folder);
  t.after(() => server.stop());
  return server.url;
}

/** Runs the table in a page. The URL `control` is that of `startControlled`. */
export async function tableInPage([places, transport, control]) {
  const { table } = await import("/table.mjs");
  const rakwire = await import("/dist/index.js");
  const { isTransient } = await import("/dist/reconnect.js");
  return table({ ...rakwire, isTransient }, places, { options: { transport }, control: (what) => fetch(control + what) });
}
