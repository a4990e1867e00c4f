// What a page in Firefox sees when a connection cannot be opened, or its way is lost: `failures/table.mjs`, as in
// `failures.test.mjs`.

import { test } from "node:test";

import { check, startControlled } from "./failures/check.mjs";
import { serveTable, tableInPage } from "./failures/page.mjs";
import { tabRows } from "./failures/tab.mjs";
import { openFirefox } from "./firefox.mjs";

for (const transport of ["auto", "websocket"]) {
  test(`a page in Firefox sees what is wrong with a relay or a server, with the transport ${transport}`, async (t) => {
    const { places, control } = await startControlled(t);
    const url = await serveTable(t);
    const firefox = await openFirefox();
    t.after(() => firefox.close());
    const given = JSON.stringify([places, transport, control]);
    check(`Firefox, ${transport}`, JSON.parse(await firefox.textOf(url, `(${tableInPage})(${given}).then(JSON.stringify)`)));
  });
}

test("a connection in Firefox ends with its tab", async (t) => {
  const firefox = await openFirefox();
  t.after(() => firefox.close());
  check("Firefox, tab", await tabRows(t, firefox.openTab, await serveTable(t)), 3);
});
