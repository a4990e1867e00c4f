// Saves under a dev server leave no player behind: the page that Vite reloads ends its connection, and so does a script that Vite
// updates and that takes itself down.

import assert from "node:assert/strict";
import { test } from "node:test";

import { DISCONNECTED, WAYS, nameOf, startLogged } from "../leave.mjs";
import { until } from "../support.mjs";
import { SCRIPTS, openDevPage } from "./dev-page.mjs";

const SAVES = 4;

for (const update of Object.keys(SCRIPTS)) {
  for (const way of WAYS) {
    test(`${SAVES} saves leave one player, ${update}: ${nameOf(way)}`, { timeout: 600_000 }, async (t) => {
      const { url, ends } = await startLogged(t);
      const page = await openDevPage(t, update, url, way);
      const loads = page.loads();
      for (let save = 1; save <= SAVES; save++) {
        await page.save();
        await until(() => ends().length >= save, "the server hears of the one before");
      }
      assert.deepEqual([...new Set(ends())], [DISCONNECTED]);
      assert.equal(page.loads() - loads, update === "full reload" ? SAVES : 0, "loads of the page");
    });
  }
}
