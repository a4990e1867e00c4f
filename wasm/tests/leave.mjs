// Pages with a connection that are left, and what their server hears of it.

import { performance } from "node:perf_hooks";

import { serveTable } from "./failures/page.mjs";
import { OWN_ADDRESS, openFirefox } from "./firefox.mjs";
import { openWith } from "./package-page.mjs";
import { startLoggedEcho, startRelay, until } from "./support.mjs";

/** The transports, and whether the protocol runs in a worker: workers have no data channels. */
export const WAYS = [
  { transport: "websocket", inWorker: false },
  { transport: "websocket", inWorker: true },
  { transport: "webtransport", inWorker: false },
  { transport: "webtransport", inWorker: true },
  { transport: "webrtc", inWorker: false },
];

/** A mode in words. */
export const nameOf = ({ transport, inWorker }) => transport + (inWorker ? ", in a worker" : "");

/** How a page is left. */
export const LEAVE = {
  close: (page) => page.close(),
  reload: (page) => page.reload(),
  navigate: (page) => page.goto("about:blank"),
  // A page that is closed while its next one comes may never be.
  "reload by a script": (page) => Promise.all([page.waitForEvent("load"), page.evaluate(() => location.reload())]),
};

/** How a page in Firefox is left, by its tab. */
const LEAVE_FIREFOX = {
  close: (tab) => tab.close(),
  reload: (tab) => tab.reload(),
  navigate: (tab) => tab.leave(),
  "reload by a script": (tab) => tab.evaluate(() => location.reload()),
};

/** A page that ends its connection and stays. */
const CLOSE = { "close()": (page) => page.evaluate(async () => void (await globalThis.connection.close())) };

/** How a connection ends: with its page, or before it. */
export const ENDS = Object.keys({ ...LEAVE, ...CLOSE });

/**
 * How a page in Firefox can end, by this transport, so that its own disconnect arrives. Firefox closes the WebSockets of a page that another
 * one follows before the page hears that it is left.
 */
export const endsAlone = ({ transport }) => ENDS.filter((how) => transport !== "websocket" || how.startsWith("close"));

/** What a server says of a player who has disconnected, and of one who has been silent for long. */
export const DISCONNECTED = "the other peer disconnected";
export const SILENT = "the other peer fell silent";

export const BY_THE_PAGE = "by the page alone";
/** Whether the relay knows the protocol of its target, and disconnects a client itself that is gone, by what it is called. */
export const RELAYS = { "by the page or its relay": ",kind=raknet", [BY_THE_PAGE]: ",kind=raw" };

/**
 * A server, and a relay before it at `url`. `kind` is what the target says of its protocol. `ends` are the reasons for which
 * connections have ended, as the server says them.
 */
export async function startLogged(t, kind = ",kind=raknet", listen = "127.0.0.1:0") {
  const echo = await startLoggedEcho(t);
  // Data channels do not say of which origin their page is.
  const relay = await startRelay(t, { game: echo.address + kind }, "--allow-any-origin", "--webrtc-allow-without-origin", "--listen", listen);
  const ends = () => echo.logged().match(/(?<= disconnected .*reason=).*/g) ?? [];
  return { echo, url: `ws://${relay.address}/ws`, ends };
}

/** Opens a connection in a page. */
const OPEN = async ([address, transport, inWorker]) => {
  const { connect } = await import("/dist/index.js");
  const { worker } = await import("/dist/worker.js");
  globalThis.connection = await connect(address, { target: "game", transport, timeoutMs: 60_000, ...(inWorker && { worker }) });
};

/**
 * Makes pages with a connection and leaves them: for which reason the server ends each then, and after how many milliseconds. `openPage`
 * makes one, and `ways` are those to leave it.
 */
function leaving({ url, ends }, openPage, ways) {
  return async (how, { transport, inWorker }) => {
    const page = await openPage();
    await page.evaluate(OPEN, [url, transport, inWorker]);
    const before = ends().length;
    const startedAt = performance.now();
    const left = Promise.resolve(ways[how](page)).catch(() => undefined);
    await until(() => ends().length > before, `the server hears of it: ${how}, ${transport}`);
    const ms = performance.now() - startedAt;
    await left;
    await page.close().catch(() => undefined);
    return { reason: ends().at(-1), ms };
  };
}

/** What `leaving` makes, with Chromium. */
export async function startLeaving(t, kind) {
  const logged = await startLogged(t, kind);
  const { page: first } = await openWith(t, { game: logged.echo.address });
  const openTab = async () => {
    const page = await first.context().browser().newPage();
    await page.goto(first.url());
    return page;
  };
  return leaving(logged, openTab, { ...LEAVE, ...CLOSE });
}

/** What `leaving` makes, with Firefox. */
export async function startLeavingFirefox(t, kind, { transport }) {
  const listen = transport === "webrtc" ? `${OWN_ADDRESS}:0` : undefined;
  const logged = await startLogged(t, kind, listen);
  const home = await serveTable(t);
  const firefox = await openFirefox();
  t.after(() => firefox.close());
  const openTab = async () => {
    const tab = await firefox.openTab(home);
    return { ...tab, evaluate: (run, given) => tab.evaluate(`(${run})(${JSON.stringify(given) ?? ""})`) };
  };
  return leaving(logged, openTab, { ...LEAVE_FIREFOX, ...CLOSE });
}
