// The heap memory that a message allocates, and that the garbage collector must later free.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

/** A heap larger than all messages of a measurement, so that the engine collects nothing. */
const HEAP = ["--min-semi-space-size=64", "--max-semi-space-size=64"];
/** The maximum bytes per message for the growth of the message queue. It must be below {@link SMALLEST_OBJECT}. */
const MAX_QUEUE_BYTES = 12;
const SMALLEST_OBJECT = 16;

test("sending and receiving a message allocates only the message", async () => {
  const script = fileURLToPath(new URL("allocations.mjs", import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, ["--expose-gc", ...HEAP, script]);
  const { own, message, withAnother } = JSON.parse(stdout);
  assert.ok(own > 0, stdout);
  assert.ok(message <= own + MAX_QUEUE_BYTES, `receiving a message allocates ${message} bytes, of which the message itself needs ${own}`);
  assert.ok(withAnother >= message + SMALLEST_OBJECT, `the measurement does not detect an additional object: ${withAnother} bytes per message instead of ${message}`);
});
