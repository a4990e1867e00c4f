// A server is notified when a page is left, for each browser, transport and way to leave. The relay either knows the
// protocol, and can disconnect in place of the page, or does not. The tests check only the close reason, which also
// bounds the time: after 10 s of silence, the server would report a timeout instead of a disconnect. `bench/leave.mjs`
// measures the time.

import assert from "node:assert/strict";
import { test } from "node:test";

import { NO_ADDRESS } from "./firefox.mjs";
import { BY_THE_PAGE, DISCONNECTED, ENDS, RELAYS, WAYS, endsAlone, nameOf, startLeaving, startLeavingFirefox } from "./leave.mjs";

/** The number of repetitions, because a disconnect that depends on a race sometimes fails. */
const RUNS = 2;
/** The maximum number of pages that are left until the page's own disconnect arrives, in browsers that may lose it. */
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

    test(`leaving the page disconnects its player in Chromium, ${by}: ${nameOf(way)}`, async (t) => {
      await runs(await startLeaving(t, kind), ENDS);
    });

    if (kind === RELAYS[BY_THE_PAGE]) {
      test(`leaving the page disconnects its player in Firefox, ${by}, in at least one of several tries: ${nameOf(way)}`, { skip }, async (t) => {
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
      test(`leaving the page disconnects its player in Firefox, ${by}: ${nameOf(way)}`, { skip }, async (t) => {
        await runs(await startLeavingFirefox(t, kind, way), ENDS);
      });
    }
  }
}
