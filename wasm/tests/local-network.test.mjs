// Local Network Access in Chromium: a page that counts as part of the public network connects to a relay in the local
// network or on this machine.

import assert from "node:assert/strict";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { launch } from "./browser.mjs";
import { serve } from "./bundlers/serve.mjs";
import { makeCertificate } from "./certificate.mjs";
import { openDisplay } from "./display.mjs";
import { buildExample } from "./rust-example.mjs";
import { startEcho, startRelay } from "./support.mjs";

const PACKAGE = fileURLToPath(new URL("..", import.meta.url));
/**
 * Host names that do not resolve: of the page and of a frame (RFC 6761 section 6.2), and of a relay in a private
 * network.
 */
const PAGE = "game.test";
const FRAME = "frame.test";
const RELAY = "relay.internal";
/** The names of the permissions in all versions of Chrome. */
const PERMISSIONS = ["local-network-access", "local-network", "loopback-network"];
/** The options of the connections: each transport, and a worker, which has no data channels. */
const WAYS = [{ transport: "auto" }, { transport: "websocket" }, { transport: "webtransport" }, { transport: "webrtc" }, { inWorker: true }];

/** Starts a site with the package or the Rust example that Chromium considers part of the public network. */
async function startSite(t, { isSecure, isRust }) {
  const folder = mkdtempSync(join(tmpdir(), "rakwire-local-network-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const { pem, key, spki } = makeCertificate(folder, PAGE);
  if (isRust) {
    buildExample(folder);
  } else {
    for (const part of ["dist", "pkg"]) {
      cpSync(join(PACKAGE, part), join(folder, part), { recursive: true });
    }
    writeFileSync(join(folder, "index.html"), "<!doctype html><title>rakwire</title>");
  }
  const server = await serve(folder, {}, isSecure ? { cert: readFileSync(pem), key: readFileSync(key) } : undefined);
  t.after(() => server.stop());
  return { url: `http${isSecure ? "s" : ""}://${PAGE}:${server.port}/`, port: server.port, spki };
}

/**
 * Opens a page in the public network with this permission decision, or with prompts on a display. Chromium treats the
 * relay as part of the address space `space`.
 */
async function openPublicPage(t, relay, { isSecure = true, isRust = false, decision, display, space = "loopback" } = {}) {
  const site = await startSite(t, { isSecure, isRust });
  const [, port] = relay.split(":");
  const flags = [
    `--ip-address-space-overrides=127.0.0.1:${site.port}=public,127.0.0.1:${port}=${space}`,
    `--host-resolver-rules=MAP ${PAGE} 127.0.0.1, MAP ${FRAME} 127.0.0.1, MAP ${RELAY} 127.0.0.1`,
    `--ignore-certificate-errors-spki-list=${site.spki}`,
  ];
  const browser = await launch(flags, display);
  t.after(() => browser.close());
  const context = await browser.newContext();
  if (decision !== undefined) {
    const session = await browser.newBrowserCDPSession();
    const { browserContextIds } = await session.send("Target.getBrowserContexts");
    for (const name of PERMISSIONS) {
      await session.send("Browser.setPermission", { permission: { name }, setting: decision, browserContextId: browserContextIds[0] });
    }
  }
  const page = await context.newPage();
  await page.goto(site.url);
  return { page, site };
}

/** Connects or pings in a page or a frame. Returns "open" and the transport, or the error. */
function attempt(frame, url, { inWorker = false, isPing = false, ...options } = {}) {
  return frame.evaluate(async ([url, inWorker, isPing, options]) => {
    const { connect, ping } = await import("/dist/index.js");
    const { isTransient } = await import("/dist/reconnect.js");
    const { worker } = inWorker ? await import("/dist/worker.js") : {};
    const settings = { target: "game", timeoutMs: 60_000, ...options };
    try {
      if (isPing) {
        await ping(url, settings);
        return { code: "open" };
      }
      const connection = await connect(url, { ...settings, ...(worker && { worker }) });
      const { transport } = connection;
      await connection.close();
      return { code: "open", transport };
    } catch (error) {
      return { code: error.code ?? String(error), message: error.message, isTransient: isTransient(error) };
    }
  }, [url, inWorker, isPing, options]);
}

async function start(t) {
  const { address } = await startEcho(t);
  // Any origin, so that data channels are offered as well.
  return (await startRelay(t, { game: address }, "--allow-any-origin")).address;
}

/** The refusals with the permission state of each: by the user, and by a browser that cannot prompt the user. */
for (const [what, decision] of [["refused by the player", "denied"], ["refused by a browser that cannot ask", undefined]]) {
  test(`a relay on this machine, ${what}, causes local-network-refused`, async (t) => {
    const relay = await start(t);
    const { page } = await openPublicPage(t, relay, { decision });
    for (const way of [...WAYS, { isPing: true }]) {
      const { code, message, isTransient } = await attempt(page, `ws://${relay}/ws`, way);
      assert.deepEqual([way, code, isTransient], [way, "local-network-refused", false]);
      assert.match(message, /the browser denies .* 127\.0\.0\.1:\d+, .* permission of its user.* allow="local-network; loopback-network; local-network-access"/);
    }
  });
}

test("every transport reaches a relay on this machine once the user allows it, and an absent relay is unreachable", async (t) => {
  const relay = await start(t);
  const { page } = await openPublicPage(t, relay, { decision: "granted" });
  for (const way of [...WAYS, { isPing: true }]) {
    const { code, transport = way.transport } = await attempt(page, `ws://${relay}/ws`, way);
    assert.deepEqual([way, code], [way, "open"]);
    assert.ok(way.transport === "auto" || transport === way.transport || way.inWorker, transport);
  }
  const off = await attempt(page, "ws://127.0.0.1:9/ws");
  assert.deepEqual([off.code, /public network/.test(off.message)], ["relay-unreachable", false]);
});

test("an attempt with an unanswered permission prompt fails at its deadline with a specific error", async (t) => {
  const relay = await start(t);
  const display = await openDisplay();
  t.after(() => display.close());
  const { page } = await openPublicPage(t, relay, { display: display.name });
  for (const way of [...WAYS, { isPing: true }]) {
    const { code, message, isTransient } = await attempt(page, `ws://${relay}/ws`, { ...way, timeoutMs: 1_000 });
    assert.deepEqual([way, code, isTransient], [way, way.isPing ? "no-answer" : "timeout", true]);
    assert.match(message, /within 1000 ms; to reach 127\.0\.0\.1:\d+, the page needs https and the permission of its user/);
  }
});

test("the error of a public http page states that the page needs https", async (t) => {
  const relay = await start(t);
  const { page } = await openPublicPage(t, relay, { isSecure: false });
  for (const way of [...WAYS, { isPing: true }].filter(({ transport }) => transport !== "webtransport")) {
    const { code, message } = await attempt(page, `ws://${relay}/ws`, way);
    assert.deepEqual([way, code], [way, "relay-unreachable"]);
    assert.match(message, /cannot be reached.*; to reach .*, the page needs https/);
  }
});

test("data channels with a known fingerprint need no permission", async (t) => {
  const relay = await start(t);
  const { webrtc } = await (await fetch(`http://${relay}/transports`)).json();
  const { page } = await openPublicPage(t, relay, { decision: "denied" });
  const { code, transport } = await attempt(page, `ws://${relay}/ws`, { fingerprint: webrtc.fingerprint });
  assert.deepEqual([code, transport], ["open", "webrtc"]);
});

test("a connection in a cross-origin frame causes a permission prompt only if the frame has `allow`", async (t) => {
  const relay = await start(t);
  const display = await openDisplay();
  t.after(() => display.close());
  const { page, site } = await openPublicPage(t, relay, { display: display.name });
  const inner = site.url.replace(PAGE, FRAME);
  for (const [allow, expected] of [["", "local-network-refused"], ["local-network; loopback-network; local-network-access", "timeout"]]) {
    await page.evaluate(([src, allow]) => {
      const frame = Object.assign(document.createElement("iframe"), { src, allow });
      return new Promise((resolve) => {
        frame.onload = resolve;
        document.body.replaceChildren(frame);
      });
    }, [inner, allow]);
    const { code } = await attempt(page.frames().at(-1), `ws://${relay}/ws`, { transport: "websocket", timeoutMs: 30_000 });
    assert.equal(code, expected);
  }
});

test("an https page queries an http relay in the local network by name and connects without a WebSocket", async (t) => {
  const relay = await start(t);
  const [, port] = relay.split(":");
  const { page } = await openPublicPage(t, relay, { decision: "granted", space: "local" });
  // An https page may not open a WebSocket to this name; the relay announces the other transports over http.
  const { code, transport, message } = await attempt(page, `ws://${RELAY}:${port}/ws`);
  assert.deepEqual([code, message], ["open", undefined]);
  assert.ok(["webtransport", "webrtc"].includes(transport), transport);
});

/** Returns the outcomes of a Rust program: of a connection over each transport, and of a ping. */
function attemptRust(page, relay) {
  return page.evaluate(async (url) => {
    const example = await import("/echo.js");
    await example.default();
    const outcomes = [];
    for (const transport of ["auto", "webtransport", "websocket"]) {
      outcomes.push(await example.play(url, "game", transport).catch(({ message }) => message));
    }
    return [...outcomes, await example.ping(url, "game").catch(({ message }) => message)];
  }, `ws://${relay}/ws`);
}

test("a Rust program gets a specific error for each permission decision of the browser", { timeout: 600_000 }, async (t) => {
  const relay = await start(t);
  const refused = "the browser denies access to the local network";
  const undecided = "the relay was not reached: the page needs https and the permission of its user for the local network";
  const denied = await openPublicPage(t, relay, { isRust: true, decision: "denied" });
  assert.deepEqual(await attemptRust(denied.page, relay), Array(4).fill(refused));
  const granted = await openPublicPage(t, relay, { isRust: true, decision: "granted" });
  const played = await attemptRust(granted.page, relay);
  assert.deepEqual(played.slice(0, 3), Array(3).fill("echoed 6 and 150000 bytes"));
  const off = await attemptRust(granted.page, "127.0.0.1:9");
  assert.deepEqual(off, Array(4).fill("connection to the relay lost (code 1006)"));
  const plain = await openPublicPage(t, relay, { isRust: true, isSecure: false });
  const [auto, webTransport, ...others] = await attemptRust(plain.page, relay);
  assert.deepEqual([auto, webTransport, ...others], [undecided, "this browser has no WebTransport; use Transport::Auto or Transport::WebSocket", undecided, undecided]);
});

test("a Rust program with an unanswered prompt gets an error at its deadline", { timeout: 600_000 }, async (t) => {
  const relay = await start(t);
  const display = await openDisplay();
  t.after(() => display.close());
  const { page } = await openPublicPage(t, relay, { isRust: true, display: display.name });
  await page.evaluate(() => {
    const { setTimeout } = globalThis;
    globalThis.setTimeout = (callback, ms) => setTimeout(callback, ms === 15_000 ? 500 : ms);
  });
  for (const outcome of await attemptRust(page, relay)) {
    assert.match(outcome, /^the relay was not reached: the page needs https and the permission of its user/);
  }
});

test("a Rust program in an https page reaches an http relay in the local network by name over WebTransport", { timeout: 600_000 }, async (t) => {
  const relay = await start(t);
  const [, port] = relay.split(":");
  const { page } = await openPublicPage(t, relay, { isRust: true, decision: "granted", space: "local" });
  await page.evaluate(() => {
    const { setTimeout } = globalThis;
    // Skips the head start of WebTransport, to test that the forbidden WebSocket does not make the attempt fail.
    globalThis.setTimeout = (callback, ms) => setTimeout(callback, ms === 250 ? 0 : ms);
  });
  const [auto, webTransport, webSocket, ping] = await attemptRust(page, `${RELAY}:${port}`);
  assert.deepEqual([auto, webTransport], Array(2).fill("echoed 6 and 150000 bytes"));
  assert.deepEqual([webSocket, ping], Array(2).fill("connection to the relay lost (code 1006)"));
});
