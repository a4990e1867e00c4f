// A server hears of a page that was left that its player has disconnected, by each transport and way, and never gives it up for its
// silence. `bench/leave.mjs` measures how long that takes.

import assert from "node:assert/strict";
import { test } from "node:test";

import { DISCONNECTED, LEAVE, WAYS, nameOf, startLeaving } from "./leave.mjs";

/** A disconnect that wins a race by luck loses it now and then. */
const RUNS = 2;

for (const way of WAYS) {
  test(`the player disconnects with the page: ${nameOf(way)}`, async (t) => {
    const leave = await startLeaving(t);
    for (const how of Object.keys(LEAVE)) {
      const reasons = [];
      while (reasons.length < RUNS) {
        reasons.push((await leave(how, way)).reason);
      }
      assert.deepEqual(reasons, Array(RUNS).fill(DISCONNECTED), how);
    }
  });
}
