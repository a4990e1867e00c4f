// The declarations of the package in projects with an older TypeScript that does not skip the declarations of
// libraries.

import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const PACKAGE = fileURLToPath(new URL("../..", import.meta.url));
const TSC = fileURLToPath(new URL("node_modules/typescript56/bin/tsc", import.meta.url));

/** The last version before typed arrays had a type parameter. */
test("the package type-checks with TypeScript 5.6 without skipLibCheck", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "rakwire-types-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  cpSync(join(PACKAGE, "tests/fixture"), folder, { recursive: true });
  for (const part of ["dist", "pkg", "package.json"]) {
    cpSync(join(PACKAGE, part), join(folder, "node_modules/rakwire", part), { recursive: true });
  }
  writeFileSync(join(folder, "older.json"), JSON.stringify({ extends: "./tsconfig.json", files: ["entries.ts", "game.ts"] }));
  try {
    execFileSync(process.execPath, [TSC, "-p", "older.json"], { cwd: folder, encoding: "utf8" });
  } catch ({ stdout }) {
    throw new Error(stdout);
  }
});
