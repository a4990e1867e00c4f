// Data channels to a real relay, in real browsers. The pages are not served by the relay, and know only its
// fingerprint.

import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { test } from "node:test";

import { connect } from "rakwire";

import { openPage } from "./browser.mjs";
import { serve } from "./bundlers/serve.mjs";
import { NO_ADDRESS, OWN_ADDRESS, openFirefox } from "./firefox.mjs";
import { PROTOCOLS } from "./protocols.mjs";
import { LIMIT_MS, next, pattern, startEcho, startMonitoredRelay, startRelay } from "./support.mjs";
import { startUdpWay } from "./way.mjs";

const PACKAGE = fileURLToPath(new URL("..", import.meta.url));

/** A name that does not resolve (RFC 6761 section 6.2). */
const NAME = "game.test";
/** The longest time to upgrade to a better transport: it is tried again after 10 s, then after twice that. */
const UPGRADE_MS = 120_000;

/** Connects, echoes messages, and returns the result. Runs in a page. */
async function play(url, options) {
  const { connect } = await import("/dist/index.js");
  const began = performance.now();
  const connection = await connect(url, { target: "game", transport: "webrtc", timeoutMs: 60_000, ...options });
  const took = performance.now() - began;
  const count = 500;
  const received = new Set();
  const done = (async () => {
    for await (const { bytes } of connection) {
      received.add((bytes[1] << 8) | bytes[2]);
      if (received.size === count) {
        return;
      }
    }
  })();
  for (let number = 0; number < count; number++) {
    const message = new Uint8Array(700).fill(0xfe);
    message.set([number >> 8, number & 0xff], 1);
    await connection.ready({ length: message.length });
    connection.send(message, { reliability: "reliable" });
  }
  await done;
  const { transport } = connection;
  connection.close();
  return { received: received.size, transport, code: (await connection.closed).code, took };
}

/** Serves a page that can import the package. */
async function servePage(t, body = "") {
  const folder = mkdtempSync(join(tmpdir(), "rakwire-webrtc-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  for (const part of ["dist", "pkg"]) {
    cpSync(join(PACKAGE, part), join(folder, part), { recursive: true });
  }
  writeFileSync(join(folder, "index.html"), `<!doctype html><title>rakwire</title>${body}`);
  const server = await serve(folder);
  t.after(() => server.stop());
  return server.url;
}

/** Starts a relay with data channels. Returns it with the parameters for its pages. */
async function startOpenRelay(t, echo, ...more) {
  // The relay uses one number for its TCP and UDP ports. Another test may occupy that UDP port, so starting is retried.
  for (let attempt = 1; attempt <= 5; attempt++) {
    const relay = await startRelay(t, { game: echo.address }, "--webrtc-allow-without-origin", ...more);
    const { webrtc, webtransport } = await (await fetch(`http://${relay.address}/transports`)).json();
    if (webrtc) return { url: `ws://${relay.address}/ws`, fingerprint: webrtc.fingerprint, webtransport };
    await relay.stop();
  }
  throw new Error("the relay offers no data channels");
}

/** Returns a free UDP port. */
async function freeUdpPort() {
  const socket = createSocket("udp4");
  await new Promise((resolve) => socket.bind(0, "127.0.0.1", resolve));
  const { port } = socket.address();
  await new Promise((resolve) => socket.close(resolve));
  return port;
}

for (const protocol of PROTOCOLS) {
  test(`${protocol.name}: Chromium exchanges messages over data channels if it knows only the fingerprint of the relay`, async (t) => {
    const echo = await startEcho(t, ...protocol.echo);
    const { url, fingerprint } = await startOpenRelay(t, echo);
    const page = await openPage(t);
    await page.goto(await servePage(t));
    const { took, ...result } = await page.evaluate(`(${play})(${JSON.stringify(url)}, ${JSON.stringify({ fingerprint, ...protocol.options })})`);
    t.diagnostic(`connected in ${Math.round(took)} ms`);
    assert.deepEqual(result, { received: 500, transport: "webrtc", code: "local" });
  });
}

test("a page and a UDP client reach the game server through one port", async (t) => {
  const echo = await startEcho(t);
  const port = await freeUdpPort();
  const udp = `127.0.0.1:${port}`;
  const { url, fingerprint, webtransport } = await startOpenRelay(t, { address: `${echo.address},kind=raknet` }, "--webtransport-listen", udp, "--udp-listen", udp);
  assert.equal(webtransport.port, port);
  const page = await openPage(t);
  await page.goto(await servePage(t));
  const native = await connect(`udp://${udp}`, { timeoutMs: LIMIT_MS });
  const address = url.replace(/:\d+/, `:${port}`);
  const playing = page.evaluate(`(${play})(${JSON.stringify(address)}, ${JSON.stringify({ fingerprint })})`);
  for (let count = 0; count < 20; count++) {
    native.send(pattern(30_000));
  }
  for (let count = 0; count < 20; count++) {
    assert.deepEqual((await next(native)).bytes, pattern(30_000));
  }
  const { took, ...result } = await playing;
  assert.ok(took > 0);
  assert.deepEqual(result, { received: 500, transport: "webrtc", code: "local" });
  assert.equal((await native.close()).code, "local");
});

test("a page gets the fingerprint from the relay", async (t) => {
  const echo = await startEcho(t);
  const { url } = await startOpenRelay(t, echo);
  const page = await openPage(t);
  await page.goto(await servePage(t));
  const { took, ...result } = await page.evaluate(`(${play})(${JSON.stringify(url)}, {})`);
  assert.ok(took > 0);
  assert.deepEqual(result, { received: 500, transport: "webrtc", code: "local" });
});

for (const listen of ["127.0.0.1:0", "[::1]:0"]) {
  test(`a relay listening only on ${listen} is reached at localhost over every transport`, async (t) => {
    const echo = await startEcho(t);
    const { url, fingerprint } = await startOpenRelay(t, echo, "--listen", listen);
    const address = `ws://localhost:${new URL(url).port}/ws`;
    const page = await openPage(t);
    await page.goto(await servePage(t));
    for (const options of [{ fingerprint }, {}, { transport: "webtransport" }, { transport: "websocket" }]) {
      const { took, ...result } = await page.evaluate(`(${play})(${JSON.stringify(address)}, ${JSON.stringify(options)})`);
      assert.ok(took > 0);
      const { transport = "webrtc" } = options;
      assert.deepEqual(result, { received: 500, transport, code: "local" });
    }
  });
}

test("a wrong fingerprint, a wrong target and a relay without data channels cause distinct errors", async (t) => {
  const echo = await startEcho(t);
  const { url, fingerprint } = await startOpenRelay(t, echo);
  const closed = await startRelay(t, { game: echo.address });
  const page = await openPage(t);
  await page.goto(await servePage(t));
  const attempt = (to, options) =>
    page.evaluate(async ([to, options]) => {
      const { connect } = await import("/dist/index.js");
      try {
        await connect(to, { target: "game", transport: "webrtc", timeoutMs: 60_000, ...options });
        return "connected";
      } catch (error) {
        return [error.code, error.relayCode];
      }
    }, [to, options]);
  const wrong = fingerprint.replace(/^../, (pair) => (pair === "00" ? "01" : "00"));
  assert.deepEqual(await attempt(url, { fingerprint: wrong }), ["relay-unreachable", 1006]);
  assert.deepEqual(await attempt(url, { fingerprint, target: "other" }), ["relay-closed", 4404]);
  assert.deepEqual(await attempt(`ws://${closed.address}/ws`, {}), ["relay-unreachable", 1006]);
  assert.deepEqual(await attempt(url, { fingerprint: "AA:BB" }), ["bad-option", undefined]);
});

test("in Chromium a connection continues over a WebSocket when data channels deliver nothing, and returns when UDP works again", async (t) => {
  const echo = await startEcho(t);
  const relay = await startRelay(t, { game: echo.address }, "--allow-any-origin");
  const { webrtc } = await (await fetch(`http://${relay.address}/transports`)).json();
  const way = await startUdpWay(t, webrtc.port);
  const page = await openPage(t);
  // The announcement offers only data channels, through the path of the test.
  const offered = { json: { webrtc: { ...webrtc, port: way.port } }, headers: { "access-control-allow-origin": "*" } };
  await page.route("**/transports", (route) => route.fulfill(offered));
  await page.goto(await servePage(t));
  await page.evaluate(async (url) => {
    const { connect } = await import("/dist/index.js");
    const connection = await connect(url, { target: "game", memory: { blocks: 1_024 }, timeoutMs: 60_000 });
    const game = { connection, received: new Set(), events: [], sent: 0 };
    globalThis.game = game;
    ["interrupted", "resumed"].forEach((name) => connection.addEventListener(name, () => game.events.push(name)));
    connection.onMessage = ({ bytes }) => game.received.add((bytes[1] << 8) | bytes[2]);
    game.timer = setInterval(() => {
      // Sends only while little is queued, because the memory may fill up while the path is cut.
      if (connection.bufferedAmount < 10_000) {
        connection.send(Uint8Array.of(0xfe, game.sent >> 8, game.sent & 0xff), { reliability: "reliable" });
        game.sent += 1;
      }
    }, 50);
  }, `ws://${relay.address}/ws`);
  const by = (name) => page.waitForFunction((name) => globalThis.game.connection.transport === name, name, { timeout: UPGRADE_MS });
  await by("webrtc");
  way.isOpen = false;
  await by("websocket");
  way.isOpen = true;
  await by("webrtc");
  const [code, events] = await page.evaluate(async () => {
    const { connection, received, events, timer } = globalThis.game;
    clearInterval(timer);
    while (received.size < globalThis.game.sent) {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    return [(await connection.close()).code, events];
  });
  assert.deepEqual([code, events.slice(0, 2)], ["local", ["interrupted", "resumed"]]);
});

// If this test fails because Chromium requires the permission for data channels too, update the document that states otherwise.
test("in Chromium a public page needs a permission to reach a relay on this machine, unless it has the fingerprint", async (t) => {
  const echo = await startEcho(t);
  const relay = await startRelay(t, { game: echo.address }, "--allow-any-origin");
  const { webrtc } = await (await fetch(`http://${relay.address}/transports`)).json();
  const site = await servePage(t);
  const page = await openPage(t, undefined, [`--ip-address-space-overrides=${new URL(site).host}=public`]);
  await page.goto(site);
  const attempt = (address, options) =>
    page.evaluate(`(${play})(${JSON.stringify(`ws://${address}/ws`)}, ${JSON.stringify(options)}).then(({ transport }) => transport, ({ code }) => code)`);
  for (const transport of ["websocket", "webtransport", "webrtc"]) {
    assert.equal(await attempt(relay.address, { transport }), "relay-unreachable");
  }
  const { fingerprint, port } = webrtc;
  assert.equal(await attempt(`127.0.0.1:${port}`, { fingerprint }), "webrtc");
  await page.context().grantPermissions(["local-network-access"]);
  for (const transport of ["websocket", "webtransport", "webrtc"]) {
    assert.equal(await attempt(relay.address, { transport }), transport);
  }
});

test("in Chromium a session continues when a NAT gives its page another port", async (t) => {
  const echo = await startEcho(t);
  const relay = await startMonitoredRelay(t, { game: echo.address }, "--allow-any-origin");
  const { webrtc } = await (await fetch(`http://${relay.address}/transports`)).json();
  const way = await startUdpWay(t, webrtc.port);
  const page = await openPage(t);
  await page.goto(await servePage(t));
  const options = { fingerprint: webrtc.fingerprint, transport: "webrtc", target: "game", timeoutMs: LIMIT_MS, silenceTimeoutMs: LIMIT_MS };
  await page.evaluate(async ([url, options]) => {
    const { connect } = await import("/dist/index.js");
    const connection = await connect(url, options);
    globalThis.game = { connection, events: [] };
    ["interrupted", "resumed"].forEach((name) => connection.addEventListener(name, () => globalThis.game.events.push(name)));
  }, [`ws://127.0.0.1:${way.port}/ws`, options]);
  const ask = (number) =>
    page.evaluate(async (number) => {
      const { connection } = globalThis.game;
      connection.send(Uint8Array.of(0xfe, number), { reliability: "reliable" });
      return (await connection.receive()).bytes[1];
    }, number);
  assert.equal(await ask(0), 0);
  for (let number = 1; number <= 3; number++) {
    way.moveClients();
    assert.equal(await ask(number), number);
  }
  const seen = await page.evaluate(async () => {
    const { connection, events } = globalThis.game;
    return { events, transport: connection.transport, code: (await connection.close()).code };
  });
  assert.deepEqual(seen, { events: [], transport: "webrtc", code: "local" });
  const metrics = await (await fetch(`http://${relay.admin}/metrics`)).text();
  assert.match(metrics, /^rakwire_relay_webrtc_sessions_total\{state="begun"\} 1$/m);
});

/**
 * Opens a page of another server in Firefox, which connects, exchanges messages and shows the result as its title.
 * Returns the title.
 */
async function playInFirefox(t, url, options, browser) {
  const script = `<script type="module">(${play})(${JSON.stringify(url)}, ${JSON.stringify(options)}).then(
    ({ took, ...result }) => { document.title = "done " + JSON.stringify(result) + " connected in " + Math.round(took) + " ms"; },
    (error) => { document.title = "failed " + error.code; },
  );</script>`;
  const page = await servePage(t, script);
  const firefox = await openFirefox(browser);
  try {
    const [result, took] = (await firefox.titleOf(page, /^(done|failed)/)).split(/ (?=connected in )/);
    if (took !== undefined) t.diagnostic(took);
    return result;
  } finally {
    await firefox.close();
  }
}

/** Starts a relay with data channels at an address that is not loopback. */
async function startRelayAtOwnAddress(t) {
  const echo = await startEcho(t);
  const own = `${OWN_ADDRESS}:0`;
  const relay = await startRelay(t, { game: echo.address }, "--allow-any-origin", "--listen", own, "--webtransport-listen", own);
  const { webrtc } = await (await fetch(`http://${relay.address}/transports`)).json();
  return { ...webrtc, tcpPort: relay.address.split(":")[1] };
}

test("Firefox exchanges messages over data channels if it knows only the fingerprint of the relay", { timeout: 300_000, skip: NO_ADDRESS }, async (t) => {
  const { port, fingerprint } = await startRelayAtOwnAddress(t);
  const title = await playInFirefox(t, `ws://${OWN_ADDRESS}:${port}/ws`, { fingerprint });
  assert.equal(title, `done ${JSON.stringify({ received: 500, transport: "webrtc", code: "local" })}`);
});

// If this test fails because Firefox resolves host names in ICE candidates, update docs/webrtc.md.
test("Firefox falls back to another transport at a host name", { timeout: 300_000, skip: NO_ADDRESS }, async (t) => {
  const { port, fingerprint, tcpPort } = await startRelayAtOwnAddress(t);
  const browser = { preferences: { "network.dns.forceResolve": OWN_ADDRESS } };
  assert.equal(await playInFirefox(t, `ws://${NAME}:${port}/ws`, { fingerprint }, browser), "failed relay-unreachable");
  const title = await playInFirefox(t, `ws://${NAME}:${tcpPort}/ws`, { transport: "auto" }, browser);
  assert.match(title, /^done \{"received":500,"transport":"(webtransport|websocket)","code":"local"\}$/);
});
