// The garbage collection cost of a message.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

/** More than all messages of a measurement use, so that nothing is collected. */
const HEAP = ["--min-semi-space-size=64", "--max-semi-space-size=64"];
/** The message queue occasionally needs a longer array: less than the smallest object per message. */
const MOST_BESIDE = 12;
const SMALLEST_OBJECT = 16;

test("sending and receiving allocates only the message", async () => {
  const script = fileURLToPath(new URL("allocations.mjs", import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, ["--expose-gc", ...HEAP, script]);
  const { own, message, withAnother } = JSON.parse(stdout);
  assert.ok(own > 0, stdout);
  assert.ok(message <= own + MOST_BESIDE, `${message} bytes for each message, whose own are ${own}`);
  assert.ok(withAnother >= message + SMALLEST_OBJECT, `one object more is not seen: ${withAnother} bytes for each message, before ${message}`);
});
