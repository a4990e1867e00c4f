// The goals of `cargo xtask bench npm`.

import assert from "node:assert/strict";
import { test } from "node:test";

import { goals, table } from "../bench/goals.mjs";

/** Figures of RakNet only. */
const measured = (us, page, worker) => ({
  message_us: { raknet: us },
  round_trip_ms: { raknet: { page: { connection: { p99: page } }, worker: { connection: { p99: worker } } } },
});

for (const [what, figures, expected] of [
  ["as much as the limit is met", measured(2, 60, 20), [true, true]],
  ["a message that takes longer is missed", measured(2.01, 60, 20), [false, true]],
  ["a worker that takes more of the page is missed", measured(1, 60, 20.1), [true, false]],
  ["a missing measurement counts as missed", measured(NaN, 60, NaN), [false, false]],
]) {
  test(what, () => assert.deepEqual(goals(figures).map(({ met }) => met), expected));
}

test("a goal contains the measured value, the limit and whether it is met", () => {
  const [message, share] = goals(measured(1.5, 80, 20));
  assert.deepEqual(message, { name: "raknet: a message, median", unit: "µs", value: 1.5, at_most: 2, met: true });
  assert.deepEqual([share.name, share.value, share.at_most], ["raknet: round trip of the connection, p99, worker of page", 0.25, 1 / 3]);
});

test("the table shows missed goals", () => {
  const lines = table(goals(measured(2.5, 80, 20))).split("\n");
  assert.deepEqual(lines.slice(2), [
    "| raknet: a message, median | 2.50 µs | at most 2.00 | missed |",
    "| raknet: round trip of the connection, p99, worker of page | 0.25 share | at most 0.33 | met |",
  ]);
});
