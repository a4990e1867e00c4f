// The failure table of `../failures/table.mjs` in each supported runtime. The runtimes run in parallel, because they
// mostly wait.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";

import { checkProgram } from "../failures/check.mjs";

const MODULES = fileURLToPath(new URL("node_modules/", import.meta.url));
/** The command that runs a script in each runtime. */
const RUNTIMES = {
  "Node 20": ["node20/bin/node"],
  "Node 22": ["node22/bin/node"],
  "Node 24": ["node24/bin/node"],
  Deno: [".bin/deno", "run", "--quiet", "--no-prompt", "--allow-net", "--allow-read", "--allow-env"],
  Bun: [".bin/bun", "run"],
};
/** The runtimes without a built-in WebSocket. */
const WITHOUT_WEBSOCKET = ["Node 20"];

describe("runtimes", { concurrency: true }, () => {
  for (const [name, [program, ...args]] of Object.entries(RUNTIMES)) {
    test(`${name} gets an error for each relay or server failure`, { timeout: 300_000 }, async (t) => {
      const path = MODULES + program;
      assert.ok(existsSync(path), `there is no ${path}: \`npm ci\` in wasm/tests/runtimes/ installs it`);
      t.diagnostic(execFileSync(path, ["--version"], { encoding: "utf8" }).split("\n")[0]);
      await checkProgram(t, name, [path, ...args], { needsWebSocket: WITHOUT_WEBSOCKET.includes(name) });
    });
  }
});
