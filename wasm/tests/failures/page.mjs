// A page with the package and the table of failures.

import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { serve } from "../bundlers/serve.mjs";

const PACKAGE = fileURLToPath(new URL("../..", import.meta.url));

/** A policy that blocks every relay. */
export const POLICY = { "content-security-policy": "default-src 'self' 'wasm-unsafe-eval'; connect-src 'self'" };

/** Serves the page with these `headers`, and returns its URL. */
export async function serveTable(t, headers) {
  const folder = mkdtempSync(join(tmpdir(), "rakwire-failures-page-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  for (const part of ["dist", "pkg"]) {
    cpSync(join(PACKAGE, part), join(folder, part), { recursive: true });
  }
  cpSync(fileURLToPath(new URL("table.mjs", import.meta.url)), join(folder, "table.mjs"));
  writeFileSync(join(folder, "index.html"), "<!doctype html><title>rakwire</title>");
  const server = await serve(folder, headers);
  t.after(() => server.stop());
  return server.url;
}

/** Makes the attempts of the table in a page. `control` is the URL of the server of `startControlled`. */
export async function tableInPage([endpoints, transport, control, ways]) {
  const { table } = await import("/table.mjs");
  const rakwire = await import("/dist/index.js");
  const { isTransient } = await import("/dist/reconnect.js");
  return table({ ...rakwire, isTransient }, endpoints, { options: { transport }, control: (what) => fetch(control + what), ways });
}

/** Makes the attempts for a page with {@link POLICY}. */
export async function forbiddenInPage(endpoints) {
  const { forbiddenTable } = await import("/table.mjs");
  const rakwire = await import("/dist/index.js");
  const { isTransient } = await import("/dist/reconnect.js");
  return forbiddenTable({ ...rakwire, isTransient }, endpoints);
}

/** Makes the attempts with workers that hang. */
export async function hungInPage(endpoints) {
  const { hungTable } = await import("/table.mjs");
  const { isTransient } = await import("/dist/reconnect.js");
  const { connect } = await import("/dist/index.js");
  const { createWorker } = await import("/dist/worker.js");
  const script = `addEventListener("message", ({ data }) => { while (data === "hang"); }); importScripts("${location.origin}/pkg/worker.js");`;
  return hungTable({ connect, createWorker, isTransient }, endpoints, () => new Worker(URL.createObjectURL(new Blob([script]))));
}
