// How long a connection takes to close.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

/** Milliseconds of the clock that the script plays: each run does the same. */
const ONE_ROUND_TRIP = 2;

test("either side of a connection closes it within one round trip", async () => {
  const script = fileURLToPath(new URL("close-in-memory.mjs", import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [script]);
  for (const [side, [code, ms]] of Object.entries(JSON.parse(stdout))) {
    assert.equal(code, "local");
    assert.ok(ms <= ONE_ROUND_TRIP, `${side}: ${ms} ms, where a datagram takes none`);
  }
});
