// Saving a script under a dev server leaves no stale player. The package closes the connection when Vite reloads the
// page. On a hot update, the script closes it in its dispose callback.

import assert from "node:assert/strict";
import { test } from "node:test";

import { NO_ADDRESS, OWN_ADDRESS } from "../firefox.mjs";
import { DISCONNECTED, WAYS, nameOf, startLogged } from "../leave.mjs";
import { until } from "../support.mjs";
import { SCRIPTS, openDevPage } from "./dev-page.mjs";

const SAVES = 4;

for (const browser of ["Chromium", "Firefox"]) {
  for (const update of Object.keys(SCRIPTS)) {
    for (const way of WAYS) {
      // Firefox does not use data channels over the loopback interface.
      const needsAddress = browser === "Firefox" && way.transport === "webrtc";
      const options = { timeout: 600_000, skip: needsAddress && NO_ADDRESS };
      test(`after ${SAVES} saves of a source file, the server has one player, ${update} in ${browser}: ${nameOf(way)}`, options, async (t) => {
        const { url, ends } = await startLogged(t, ",kind=raknet", needsAddress ? `${OWN_ADDRESS}:0` : undefined);
        const page = await openDevPage(t, update, url, way, browser);
        const loads = page.loads();
        for (let save = 1; save <= SAVES; save++) {
          await page.save();
          await until(() => ends().length >= save, "the previous player has disconnected");
        }
        assert.deepEqual([...new Set(ends())], [DISCONNECTED]);
        assert.equal(page.loads() - loads, update === "full reload" ? SAVES : 0, "number of times the page was loaded");
      });
    }
  }
}
