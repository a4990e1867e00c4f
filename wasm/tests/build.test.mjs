// The build is reproducible in any folder. Only the smallest WebAssembly is built twice, because building takes long.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";

const PACKAGE = fileURLToPath(new URL("..", import.meta.url));
const SOURCES = ["build.mjs", "package.json", "tsconfig.json", "ts", "pkg"];
/** True for the files that `--typescript` writes to `pkg`; it keeps all other files. */
const isScript = (file) => /^(worker|voice-worklet)\b/.test(basename(file));

/** Returns the hash of each file that the build writes. */
function hashes(folder) {
  const files = ["dist", "pkg"].flatMap((part) =>
    readdirSync(join(folder, part), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && (part === "dist" || isScript(entry.name)))
      .map((entry) => join(entry.parentPath ?? entry.path, entry.name)),
  );
  return Object.fromEntries(
    files.sort().map((file) => [file.slice(folder.length + 1), createHash("sha256").update(readFileSync(file)).digest("hex")]),
  );
}

test("the same sources build the same package in another folder", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "rakwire-build-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  // Copies the sources without the output of an earlier build.
  const isSource = (file) => !(basename(dirname(file)) === "pkg" && isScript(file));
  SOURCES.forEach((name) => cpSync(join(PACKAGE, name), join(folder, name), { recursive: true, filter: isSource }));
  assert.deepEqual(readdirSync(join(folder, "pkg")).filter(isScript), []);
  symlinkSync(join(PACKAGE, "node_modules"), join(folder, "node_modules"));
  execFileSync(process.execPath, ["build.mjs", "--typescript"], { cwd: folder, stdio: "inherit" });
  const [built, before] = [hashes(folder), hashes(PACKAGE.replace(/\/$/, ""))];
  assert.deepEqual(built, before);
  const scripts = Object.keys(built).filter((file) => file.startsWith("pkg/"));
  assert.equal(scripts.length, 6, `${scripts}`);
});

/** The parts of the repository that cargo reads to build one crate: cargo requires every member of the workspace. */
const MANIFEST = execFileSync("cargo", ["locate-project", "--workspace", "--message-format", "plain"], { cwd: PACKAGE, encoding: "utf8" });
const WORKSPACE = dirname(MANIFEST);
const isCargos = (file) => !["target", "node_modules", "dist", "pkg"].includes(basename(file));

test("the same sources build the same WebAssembly in another folder", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "rakwire-workspace-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const manifest = readFileSync(join(WORKSPACE, "Cargo.toml"), "utf8");
  const members = [.../^members = \[(.*?)\]/ms.exec(manifest)[1].matchAll(/"(.*?)"/g)].map(([, member]) => member);
  const parts = new Set(members.map((member) => member.split("/")[0]));
  for (const name of ["Cargo.toml", "Cargo.lock", ...parts]) {
    cpSync(join(WORKSPACE, name), join(folder, name), { recursive: true, verbatimSymlinks: true, filter: isCargos });
  }
  symlinkSync(join(PACKAGE, "node_modules"), join(folder, "wasm/node_modules"));
  const env = { ...process.env, CARGO_TARGET_DIR: join(folder, "other-target") };
  execFileSync(process.execPath, ["build.mjs", "--entry", "game-protocol"], { cwd: join(folder, "wasm"), env, stdio: "inherit" });
  const hash = (root) => createHash("sha256").update(readFileSync(join(root, "pkg/game-protocol.wasm"))).digest("hex");
  assert.equal(hash(join(folder, "wasm")), hash(PACKAGE));
});

test("the WebAssembly embedded in an entry equals the separate file", async () => {
  for (const name of ["rakwire", "raknet", "game-protocol", "secure", "server"]) {
    const { default: packed } = await import(`../pkg/${name}.js`);
    assert.deepEqual(gunzipSync(Buffer.from(packed, "base64")), readFileSync(join(PACKAGE, "pkg", `${name}.wasm`)), name);
  }
});
