// A server hears of a page that was left that its player has disconnected, by each browser, transport and way, and never gives it up for
// its silence: neither with a relay that knows the protocol, and can disconnect in place of the page, nor with one that does not.
// `bench/leave.mjs` measures how long that takes. The reason bounds it, too: a server gives up the first player who is silent for 10 s, and
// says so, so that one who has disconnected did so before, on any machine.

import assert from "node:assert/strict";
import { test } from "node:test";

import { NO_ADDRESS } from "./firefox.mjs";
import { BY_THE_PAGE, DISCONNECTED, ENDS, RELAYS, WAYS, endsAlone, nameOf, startLeaving, startLeavingFirefox } from "./leave.mjs";

/** A disconnect that wins a race by luck loses it now and then. */
const RUNS = 2;
/** How often a page is left at most until its own disconnect arrives, where the browser may lose it. */
const TRIES = 5;

for (const [by, kind] of Object.entries(RELAYS)) {
  for (const way of WAYS) {
    const skip = way.transport === "webrtc" && NO_ADDRESS;
    const runs = async (leave, ends) => {
      for (const how of ends) {
        const reasons = [];
        while (reasons.length < RUNS) {
          reasons.push((await leave(how, way)).reason);
        }
        assert.deepEqual(reasons, Array(RUNS).fill(DISCONNECTED), how);
      }
    };

    test(`the player in Chromium disconnects with the page, ${by}: ${nameOf(way)}`, async (t) => {
      await runs(await startLeaving(t, kind), ENDS);
    });

    if (kind === RELAYS[BY_THE_PAGE]) {
      test(`the player in Firefox disconnects with the page, ${by}, unless Firefox loses it: ${nameOf(way)}`, { skip }, async (t) => {
        const leave = await startLeavingFirefox(t, kind, way);
        for (const how of endsAlone(way)) {
          let reason;
          for (let tried = 0; tried < TRIES && reason !== DISCONNECTED; tried++) {
            ({ reason } = await leave(how, way));
          }
          assert.equal(reason, DISCONNECTED, how);
        }
      });
    } else {
      test(`the player in Firefox disconnects with the page, ${by}: ${nameOf(way)}`, { skip }, async (t) => {
        await runs(await startLeavingFirefox(t, kind, way), ENDS);
      });
    }
  }
}
