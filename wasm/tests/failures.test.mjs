// The errors in a page, and in a program in Node, when a connection cannot be opened or its path is lost:
// `failures/table.mjs`. `runtimes/failures.test.mjs` makes the same attempts in each version of Node, Deno and Bun, and
// `failures-firefox.test.mjs` in Firefox.

import { after, test } from "node:test";

import { launch, openPage } from "./browser.mjs";
import { check, checkProgram, startControlled } from "./failures/check.mjs";
import { POLICY, forbiddenInPage, hungInPage, serveTable, tableInPage } from "./failures/page.mjs";
import { startEndpoints, startWays } from "./failures/endpoints.mjs";
import { tabRows } from "./failures/tab.mjs";
import { WAYS, nameOf } from "./leave.mjs";

const [MAJOR] = process.versions.node.split(".");

test("a program in Node gets an error for each relay or server failure", async (t) => {
  await checkProgram(t, `Node ${MAJOR}`, [process.execPath], { needsWebSocket: Number(MAJOR) < 22 });
});

for (const transport of ["auto", "websocket"]) {
  test(`a page in Chromium gets an error for each relay or server failure, with the transport ${transport}`, async (t) => {
    const { endpoints, control } = await startControlled(t);
    const ways = await startWays(t, transport === "auto" ? ["webtransport", "webrtc"] : []);
    const page = await openPage(t);
    await page.goto(await serveTable(t));
    check(`Chromium, ${transport}`, await page.evaluate(tableInPage, [endpoints, transport, control, ways]));
  });
}

test("a page in Chromium whose policy blocks the relay gets relay-unreachable immediately", async (t) => {
  const { endpoints } = await startEndpoints(t);
  const page = await openPage(t);
  await page.goto(await serveTable(t, POLICY));
  check("Chromium, policy", await page.evaluate(forbiddenInPage, endpoints), 6);
});

test("a connection in Chromium is closed when its worker hangs", async (t) => {
  const { endpoints } = await startEndpoints(t);
  const page = await openPage(t);
  await page.goto(await serveTable(t));
  // The table has three attempts: the worker hangs during the connect, during the close, or in an open connection.
  check("Chromium, worker", await page.evaluate(hungInPage, endpoints), 3);
});

/** One browser for all tabs. */
let tabs;
after(() => tabs?.close());

/** Sends a POSIX signal to the processes of all tabs. */
async function signalTabs(name) {
  const system = await tabs.newBrowserCDPSession();
  const { processInfo } = await system.send("SystemInfo.getProcessInfo");
  processInfo.filter(({ type }) => type === "renderer").forEach(({ id }) => process.kill(id, name));
  await system.detach();
}

for (const way of WAYS) {
  test(`a connection in Chromium is closed with its tab and continues after freezing: ${nameOf(way)}`, async (t) => {
    // Enables the back/forward cache, as for real users.
    tabs ??= await launch([], undefined, ["--disable-back-forward-cache"]);
    const openTab = async (url) => {
      const page = await tabs.newPage();
      await page.goto(url);
      const devtools = await page.context().newCDPSession(page);
      // A debugger halts the page. `Page.setWebLifecycleState` has no effect here: Playwright keeps its pages visible,
      // and Chromium does not freeze visible pages.
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
