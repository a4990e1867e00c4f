// What a page, and a program in Node, sees when a connection cannot be opened, or its way is lost: `failures/table.mjs`. Other
// versions of Node, Deno and Bun run the same in `bundlers/failures.test.mjs`.

import { test } from "node:test";

import { check, checkProgram } from "./failures/check.mjs";
import { startPlaces } from "./failures/places.mjs";
import { openTablePage } from "./failures/page.mjs";

const [MAJOR] = process.versions.node.split(".");

test("this Node sees what is wrong with a relay or a server", async (t) => {
  await checkProgram(t, `Node ${MAJOR}`, [process.execPath], { needsWebSocket: Number(MAJOR) < 22 });
});

for (const transport of ["auto", "websocket"]) {
  test(`a page in Chromium sees what is wrong with a relay or a server, with the transport ${transport}`, async (t) => {
    const { places, control } = await startPlaces(t);
    const page = await openTablePage(t, control);
    check(`Chromium, ${transport}`, await page.evaluate(async ([places, transport]) => {
      const { table } = await import("/table.mjs");
      const rakwire = await import("/dist/index.js");
      const { isTransient } = await import("/dist/reconnect.js");
      return table({ ...rakwire, isTransient }, places, { options: { transport }, control: (what) => globalThis.control(what) });
    }, [places, transport]));
  });
}
