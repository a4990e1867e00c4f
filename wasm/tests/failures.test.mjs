// What a page, and a program in Node, sees when a connection cannot be opened, or its way is lost: `failures/table.mjs`. Other
// versions of Node, Deno and Bun run the same in `bundlers/failures.test.mjs`, and Firefox in `failures-firefox.test.mjs`.

import { test } from "node:test";

import { openPage } from "./browser.mjs";
import { check, checkProgram, startControlled } from "./failures/check.mjs";
import { serveTable, tableInPage } from "./failures/page.mjs";

const [MAJOR] = process.versions.node.split(".");

test("this Node sees what is wrong with a relay or a server", async (t) => {
  await checkProgram(t, `Node ${MAJOR}`, [process.execPath], { needsWebSocket: Number(MAJOR) < 22 });
});

for (const transport of ["auto", "websocket"]) {
  test(`a page in Chromium sees what is wrong with a relay or a server, with the transport ${transport}`, async (t) => {
    const { places, control } = await startControlled(t);
    const page = await openPage(t);
    await page.goto(await serveTable(t));
    check(`Chromium, ${transport}`, await page.evaluate(tableInPage, [places, transport, control]));
  });
}
