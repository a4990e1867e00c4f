// The errors in a page in Firefox when a connection cannot be opened or its path is lost: `failures/table.mjs`, as in
// `failures.test.mjs`.

import { test } from "node:test";

import { check, startControlled } from "./failures/check.mjs";
import { POLICY, forbiddenInPage, hungInPage, serveTable, tableInPage } from "./failures/page.mjs";
import { startEndpoints, startWays } from "./failures/endpoints.mjs";
import { tabRows } from "./failures/tab.mjs";
import { NO_ADDRESS, OWN_ADDRESS, openFirefox } from "./firefox.mjs";
import { WAYS, nameOf } from "./leave.mjs";

for (const transport of ["auto", "websocket"]) {
  test(`a page in Firefox gets an error for each relay or server failure, with the transport ${transport}`, async (t) => {
    const { endpoints, control } = await startControlled(t);
    // Firefox does not use data channels over the loopback interface.
    const ways = await startWays(t, transport === "auto" ? ["webtransport"] : []);
    const url = await serveTable(t);
    const firefox = await openFirefox();
    t.after(() => firefox.close());
    const given = JSON.stringify([endpoints, transport, control, ways]);
    check(`Firefox, ${transport}`, JSON.parse(await firefox.textOf(url, `(${tableInPage})(${given}).then(JSON.stringify)`)));
  });
}

test("a page in Firefox whose policy blocks the relay gets relay-unreachable immediately", async (t) => {
  const { endpoints } = await startEndpoints(t);
  const url = await serveTable(t, POLICY);
  const firefox = await openFirefox();
  t.after(() => firefox.close());
  check("Firefox, policy", JSON.parse(await firefox.textOf(url, `(${forbiddenInPage})(${JSON.stringify(endpoints)}).then(JSON.stringify)`)), 6);
});

test("a connection in Firefox is closed when its worker hangs", async (t) => {
  const { endpoints } = await startEndpoints(t);
  const url = await serveTable(t);
  const firefox = await openFirefox();
  t.after(() => firefox.close());
  // The table has three attempts: the worker hangs during the connect, during the close, or in an open connection.
  check("Firefox, worker", JSON.parse(await firefox.textOf(url, `(${hungInPage})(${JSON.stringify(endpoints)}).then(JSON.stringify)`)), 3);
});

for (const way of WAYS) {
  const atOwnAddress = way.transport === "webrtc";
  test(`a connection in Firefox is closed with its tab: ${nameOf(way)}`, { skip: atOwnAddress && NO_ADDRESS }, async (t) => {
    const firefox = await openFirefox();
    t.after(() => firefox.close());
    const listen = atOwnAddress ? `${OWN_ADDRESS}:0` : "127.0.0.1:0";
    check(`Firefox, tab, ${nameOf(way)}`, await tabRows(t, firefox.openTab, await serveTable(t), way, { listen }), 3);
  });
}
