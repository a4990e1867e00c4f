// The same table of failures as `../failures.test.mjs`, in the other runtimes that the package supports.

import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { checkProgram } from "../failures/check.mjs";

const MODULES = fileURLToPath(new URL("node_modules/", import.meta.url));
/** How each runs a script, and how it says its version. */
const RUNTIMES = {
  "Node 22": ["node22/bin/node"],
  "Node 24": ["node24/bin/node"],
  Deno: [".bin/deno", "run", "--quiet", "--no-prompt", "--allow-net", "--allow-read", "--allow-env"],
  Bun: [".bin/bun", "run"],
};

for (const [name, [program, ...args]] of Object.entries(RUNTIMES)) {
  test(`${name} sees what is wrong with a relay or a server`, { timeout: 300_000 }, async (t) => {
    const path = MODULES + program;
    t.diagnostic(execFileSync(path, ["--version"], { encoding: "utf8" }).split("\n")[0]);
    await checkProgram(t, name, [path, ...args]);
  });
}
