// Pages with a connection that are left, and how their server is notified.

import { performance } from "node:perf_hooks";

import { serveTable } from "./failures/page.mjs";
import { OWN_ADDRESS, openFirefox } from "./firefox.mjs";
import { openWith } from "./package-page.mjs";
import { startLoggedEcho, startRelay, until } from "./support.mjs";

/** The transports, in a page or a worker; workers have no data channels. */
export const WAYS = [
  { transport: "websocket", inWorker: false },
  { transport: "websocket", inWorker: true },
  { transport: "webtransport", inWorker: false },
  { transport: "webtransport", inWorker: true },
  { transport: "webrtc", inWorker: false },
];

/** Describes a mode. */
export const nameOf = ({ transport, inWorker }) => transport + (inWorker ? ", in a worker" : "");

/** The ways to leave a page. */
export const LEAVE = {
  close: (page) => page.close(),
  reload: (page) => page.reload(),
  navigate: (page) => page.goto("about:blank"),
  // A page that is closed while the next one loads may never load it.
  "reload by a script": (page) => Promise.all([page.waitForEvent("load"), page.evaluate(() => location.reload())]),
};

/** The ways to leave a page in Firefox, applied to its tab. */
const LEAVE_FIREFOX = {
  close: (tab) => tab.close(),
  reload: (tab) => tab.reload(),
  navigate: (tab) => tab.leave(),
  "reload by a script": (tab) => tab.evaluate(() => location.reload()),
};

/** Closes the connection while the page stays open. */
const CLOSE = { "close()": (page) => page.evaluate(async () => void (await globalThis.connection.close())) };

/** The names of the ways to close a connection: by leaving its page, or by `close()`. */
export const ENDS = Object.keys({ ...LEAVE, ...CLOSE });

/**
 * Returns the ways for which the page's own disconnect arrives in Firefox. Firefox closes the WebSockets of a replaced
 * page before it notifies the page.
 */
export const endsAlone = ({ transport }) => ENDS.filter((how) => transport !== "websocket" || how.startsWith("close"));

/** The close reason in the server's log for a player that has disconnected. */
export const DISCONNECTED = "the peer ended the connection";
/** The close reason in the server's log for a player that was silent for too long. */
export const SILENT = "the connection timed out: the peer stopped answering";

export const BY_THE_PAGE = "by the page alone";
/**
 * The kinds of targets, as options of the relay. A relay that knows the protocol of its target disconnects a lost
 * client itself. With `raw`, only the page can disconnect.
 */
export const RELAYS = { "by the page or its relay": ",kind=raknet", [BY_THE_PAGE]: ",kind=raw" };

/**
 * Starts a server, and a relay at `url`. `kind` is the protocol of the target. `ends` returns the close reasons in the
 * server's log.
 */
export async function startLogged(t, kind = ",kind=raknet", listen = "127.0.0.1:0") {
  const echo = await startLoggedEcho(t);
  // Data channels do not transmit the origin of their page.
  const relay = await startRelay(t, { game: echo.address + kind }, "--allow-any-origin", "--webrtc-allow-without-origin", "--listen", listen);
  const ends = () => echo.logged().match(/(?<= disconnected .*reason=).*/g) ?? [];
  return { echo, url: `ws://${relay.address}/ws`, ends };
}

/** Runs in a page: opens a connection. */
const OPEN = async ([address, transport, inWorker]) => {
  const { connect } = await import("/dist/index.js");
  const { worker } = await import("/dist/worker.js");
  globalThis.connection = await connect(address, { target: "game", transport, timeoutMs: 60_000, ...(inWorker && { worker }) });
};

/**
 * Returns a function that opens a page with a connection and leaves it. The function returns the close reason in the
 * server's log and the time until it appeared, in milliseconds. `openPage` opens a page, and `ways` are the ways to
 * leave it.
 */
function leaving({ url, ends }, openPage, ways) {
  return async (how, { transport, inWorker }) => {
    const page = await openPage();
    await page.evaluate(OPEN, [url, transport, inWorker]);
    const before = ends().length;
    const startedAt = performance.now();
    const left = Promise.resolve(ways[how](page)).catch(() => undefined);
    await until(() => ends().length > before, `the server is notified: ${how}, ${transport}`);
    const ms = performance.now() - startedAt;
    await left;
    await page.close().catch(() => undefined);
    return { reason: ends().at(-1), ms };
  };
}

/** Returns the function of {@link leaving} for Chromium. */
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

/** Returns the function of {@link leaving} for Firefox. */
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
