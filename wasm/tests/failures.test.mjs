// What a page, and a program in Node, sees when a connection cannot be opened, or its way is lost: `failures/table.mjs`. Each
// version of Node, Deno and Bun run the same in `runtimes/failures.test.mjs`, and Firefox in `failures-firefox.test.mjs`.

import { after, test } from "node:test";

import { launch, openPage } from "./browser.mjs";
import { check, checkProgram, startControlled } from "./failures/check.mjs";
import { POLICY, forbiddenInPage, hungInPage, serveTable, tableInPage } from "./failures/page.mjs";
import { startPlaces, startWays } from "./failures/places.mjs";
import { tabRows } from "./failures/tab.mjs";
import { WAYS, nameOf } from "./leave.mjs";

const [MAJOR] = process.versions.node.split(".");

test("this Node sees what is wrong with a relay or a server", async (t) => {
  await checkProgram(t, `Node ${MAJOR}`, [process.execPath], { needsWebSocket: Number(MAJOR) < 22 });
});

for (const transport of ["auto", "websocket"]) {
  test(`a page in Chromium sees what is wrong with a relay or a server, with the transport ${transport}`, async (t) => {
    const { places, control } = await startControlled(t);
    const ways = await startWays(t, transport === "auto" ? ["webtransport", "webrtc"] : []);
    const page = await openPage(t);
    await page.goto(await serveTable(t));
    check(`Chromium, ${transport}`, await page.evaluate(tableInPage, [places, transport, control, ways]));
  });
}

test("a page in Chromium whose policy keeps it from its relay hears at once that it cannot be reached", async (t) => {
  const { places } = await startPlaces(t);
  const page = await openPage(t);
  await page.goto(await serveTable(t, POLICY));
  check("Chromium, policy", await page.evaluate(forbiddenInPage, places), 6);
});

test("a connection in Chromium whose worker hangs has an end", async (t) => {
  const { places } = await startPlaces(t);
  const page = await openPage(t);
  await page.goto(await serveTable(t));
  check("Chromium, worker", await page.evaluate(hungInPage, places), 3);
});

/** One browser for the tabs of all ways. */
let tabs;
after(() => tabs?.close());

/** Sends a signal to the processes of all tabs. */
async function signalTabs(name) {
  const system = await tabs.newBrowserCDPSession();
  const { processInfo } = await system.send("SystemInfo.getProcessInfo");
  processInfo.filter(({ type }) => type === "renderer").forEach(({ id }) => process.kill(id, name));
  await system.detach();
}

for (const way of WAYS) {
  test(`a connection in Chromium ends with its tab, and outlives that it is frozen: ${nameOf(way)}`, async (t) => {
    // Pages are kept for a return, as they are for players.
    tabs ??= await launch([], undefined, ["--disable-back-forward-cache"]);
    const openTab = async (url) => {
      const page = await tabs.newPage();
      await page.goto(url);
      const devtools = await page.context().newCDPSession(page);
      // A debugger halts the page. `Page.setWebLifecycleState` does nothing here: Playwright has its pages seem to be visible, and Chromium
      // freezes none that is.
      const freeze = async () => {
        const paused = new Promise((resolve) => devtools.once("Debugger.paused", resolve));
        await devtools.send("Debugger.enable");
        await devtools.send("Debugger.pause");
        await paused;
      };
      return {
        evaluate: (expression) => page.evaluate(expression),
        close: () => page.close(),
        reload: () => page.reload(),
        leave: () => page.goto("about:blank"),
        comeBack: () => page.goBack({ waitUntil: "commit" }),
        freeze,
        ask: async (expression) => (await devtools.send("Runtime.evaluate", { expression })).result.value,
        thaw: () => devtools.send("Debugger.disable"),
        stop: () => signalTabs("SIGSTOP"),
        goOn: () => signalTabs("SIGCONT"),
      };
    };
    check(`Chromium, tab, ${nameOf(way)}`, await tabRows(t, openTab, await serveTable(t), way, { keepsPages: true, freezesPages: true }), 5);
  });
}
