// The transports of a page: WebTransport, WebSocket, and changes between them. Uses browsers, real relays and real
// servers.

import assert from "node:assert/strict";
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { openPage } from "./browser.mjs";
import { openFirefox } from "./firefox.mjs";
import { PROTOCOLS } from "./protocols.mjs";
import { startEcho, startRelay, until } from "./support.mjs";
import { startTcpWay, startUdpWay } from "./way.mjs";

/** The longest time to upgrade to a better transport: it is tried again after 10 s, then after twice that. */
const UPGRADE_MS = 120_000;

const PACKAGE = fileURLToPath(new URL("..", import.meta.url));

/** Starts a relay that serves the package and this page. */
async function startSite(t, target, html, ...more) {
  const folder = mkdtempSync(join(tmpdir(), "rakwire-transports-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  for (const part of ["dist", "pkg"]) {
    cpSync(join(PACKAGE, part), join(folder, part), { recursive: true });
  }
  writeFileSync(join(folder, "index.html"), html);
  return startRelay(t, { game: target.address }, "--serve", folder, ...more);
}

/** Opens a page over plain HTTP from the IP address of a relay, which also serves the package. */
async function startPage(t, target, ...more) {
  const relay = await startSite(t, target, "<!doctype html><title>rakwire</title>", ...more);
  const page = await openPage(t);
  await page.goto(`http://${relay.address}/`);
  return { page, relay };
}

/**
 * Connects in the page, exchanges messages over this transport, and returns the result. On a busy machine another
 * transport may open first, and be replaced later.
 */
function exchange(page, wanted, options) {
  return page.evaluate(async ([wanted, limitMs, options]) => {
    const { connect } = await import("/dist/index.js");
    const { worker } = options.inWorker ? await import("/dist/worker.js") : {};
    const { inWorker: _, ...rest } = options;
    const settings = { target: "game", memory: { blocks: 1_024 }, ...rest, ...(worker && { worker }) };
    const dial = (attempts) =>
      connect("/ws", settings).catch((error) => {
        // Repeats the attempt after a timeout, because the handshake may lose datagrams.
        if (attempts > 1 && ["timeout", "no-answer"].includes(error.code)) {
          return dial(attempts - 1);
        }
        throw error;
      });
    const connection = await dial(3);
    for (const end = Date.now() + limitMs; connection.transport !== wanted && Date.now() < end; ) {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    const { transport } = connection;
    const received = [];
    connection.onMessage = ({ bytes }) => received.push(bytes[1]);
    for (let number = 0; number < 100; number++) {
      await connection.ready({ length: 3_000 });
      connection.send(new Uint8Array(3_000).fill(0xfe).fill(number, 1), { reliability: "reliable" });
    }
    while (received.length < 100) {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    // A worker sends statistics to the page at intervals.
    while (connection.stats().mtu === 0) {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    const { mtu, drops } = connection.stats();
    await connection.close();
    return { transport, mtu, drops, received: received.sort((a, b) => a - b), after: connection.transport };
  }, [wanted, UPGRADE_MS, options]);
}

/** Returns the error of a page that uses only this transport. */
const refusal = (page, address, transport) =>
  page.evaluate(
    async ([url, transport]) => {
      const { connect } = await import("/dist/index.js");
      return connect(url, { target: "game", transport }).then(
        () => "connected",
        ({ code, relayCode }) => [code, relayCode],
      );
    },
    [`ws://${address}/ws`, transport],
  );

test("a page of a refused origin or a banned address gets the reason over every transport", async (t) => {
  const echo = await startEcho(t);
  const { page } = await startPage(t, echo);
  const foreign = await startRelay(t, { game: echo.address }, "--allow-origin", "https://play.example.org");
  const folder = mkdtempSync(join(tmpdir(), "rakwire-bans-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, "bans"), "127.0.0.1\n");
  const banned = await startRelay(t, { game: echo.address }, "--bans", join(folder, "bans"));
  for (const transport of ["webtransport", "webrtc", "websocket", "auto"]) {
    assert.deepEqual(await refusal(page, foreign.address, transport), ["origin-refused", 4403], transport);
    assert.deepEqual(await refusal(page, banned.address, transport), ["banned", 4403], transport);
  }
});

const NUMBERS = Array.from({ length: 100 }, (_, number) => number);

for (const protocol of PROTOCOLS) {
  test(`${protocol.name}: a page loaded over plain HTTP from the relay's IP address uses WebTransport, or a WebSocket if that is selected or the relay has no WebTransport`, async (t) => {
    const echo = await startEcho(t, ...protocol.echo);
    const { page } = await startPage(t, echo);
    for (const [more, transport] of [
      [{}, "webtransport"],
      [{ transport: "webtransport" }, "webtransport"],
      [{ transport: "websocket" }, "websocket"],
      [{ inWorker: true }, "webtransport"],
    ]) {
      const result = await exchange(page, transport, { ...protocol.options, ...more });
      assert.deepEqual([result.transport, result.after, result.received], [transport, undefined, NUMBERS], JSON.stringify(more));
      assert.equal(result.drops.tooLongForTransport, undefined);
      if (protocol.name === "RakNet") {
        assert.equal(result.mtu, transport === "websocket" ? 1_492 : 1_052);
      }
    }
    const without = await startPage(t, echo, "--webtransport", "off");
    const result = await exchange(without.page, "websocket", protocol.options);
    assert.deepEqual([result.transport, result.received], ["websocket", NUMBERS]);
  });
}

/** Replaces the UDP port in the relay's announcement with the port of a path that the test can degrade. */
async function useWay(t, page, relay) {
  const transports = await (await fetch(`http://${relay.address}/transports`)).json();
  const way = await startUdpWay(t, transports.webtransport.port);
  transports.webtransport.port = way.port;
  await page.route("**/transports", (route) => route.fulfill({ json: transports }));
  return way;
}

test("with UDP blocked a page uses a WebSocket", async (t) => {
  const { page, relay } = await startPage(t, await startEcho(t));
  const way = await useWay(t, page, relay);
  way.isOpen = false;
  const result = await exchange(page, "websocket", {});
  assert.deepEqual([result.transport, result.received], ["websocket", NUMBERS]);
});

test("a connection continues over a WebSocket when UDP fails, and over WebTransport when it returns", async (t) => {
  const { page, relay } = await startPage(t, await startEcho(t));
  const way = await useWay(t, page, relay);
  await page.evaluate(async () => {
    const { connect } = await import("/dist/index.js");
    const connection = await connect("/ws", { target: "game", memory: { blocks: 1_024 }, timeoutMs: 60_000 });
    const game = { connection, received: new Set(), sent: 0 };
    globalThis.game = game;
    connection.onMessage = ({ bytes }) => game.received.add((bytes[1] << 8) | bytes[2]);
    game.timer = setInterval(() => {
      // Sends only while little is queued, because the memory may fill up while the path is cut.
      if (connection.bufferedAmount < 10_000) {
        connection.send(Uint8Array.of(0xfe, game.sent >> 8, game.sent & 0xff), { reliability: "reliable" });
        game.sent += 1;
      }
    }, 50);
  });
  const by = (name) => page.waitForFunction((name) => globalThis.game.connection.transport === name, name, { timeout: UPGRADE_MS });
  await by("webtransport");
  way.isOpen = false;
  await by("websocket");
  way.isOpen = true;
  await by("webtransport");
  const result = await page.evaluate(async () => {
    const { connection, received, timer } = globalThis.game;
    clearInterval(timer);
    while (received.size < globalThis.game.sent) {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    return (await connection.close()).code;
  });
  assert.equal(result, "local");
});

test("in Chromium a connection continues over another WebSocket and loses no message", async (t) => {
  const { page, relay } = await startPage(t, await startEcho(t));
  const way = await startTcpWay(t, relay);
  await page.evaluate(async (url) => {
    const { connect } = await import("/dist/index.js");
    const connection = await connect(url, { target: "game", transport: "websocket", timeoutMs: 60_000 });
    const game = { connection, received: new Set(), events: [], sent: 0 };
    globalThis.game = game;
    for (const name of ["interrupted", "resumed", "close"]) {
      connection.addEventListener(name, ({ type }) => game.events.push(type));
    }
    connection.onMessage = ({ bytes }) => game.received.add(bytes[1]);
    game.send = () => {
      for (let count = 0; count < 15; count++) {
        connection.send(Uint8Array.of(0xfe, game.sent++), { reliability: "reliable" });
      }
    };
  }, way.url);
  for (let cuts = 1; cuts <= 3; cuts++) {
    const { refused } = way;
    way.isOpen = false;
    await page.evaluate(() => globalThis.game.send());
    way.cut();
    await until(() => way.refused > refused, "the client tries to reconnect while the path is cut");
    await page.evaluate(() => globalThis.game.send());
    way.isOpen = true;
    await page.waitForFunction((cuts) => globalThis.game.events.length === 2 * cuts, cuts);
  }
  await page.waitForFunction(() => globalThis.game.received.size === 90);
  const [events, code] = await page.evaluate(async () => {
    const { connection, events } = globalThis.game;
    const before = [...events];
    return [before, (await connection.close()).code];
  });
  assert.deepEqual([events, code], [Array(3).fill(["interrupted", "resumed"]).flat(), "local"]);
});

test("each transport refuses a page of another origin and admits a page of a listed origin", async (t) => {
  const echo = await startEcho(t);
  const { page, relay: own } = await startPage(t, echo);
  const outcome = (relay, transport) =>
    page.evaluate(async ([url, transport]) => {
      const { connect } = await import("/dist/index.js");
      try {
        const connection = await connect(url, { target: "game", timeoutMs: 60_000, transport });
        return `${connection.transport} ${(await connection.close()).code}`;
      } catch ({ code, relayCode }) {
        return `${code} ${relayCode}`;
      }
    }, [`ws://${relay.address}/ws`, transport]);
  const [list, foreign] = [["--allow-origin", `http://${own.address}`], ["--allow-origin", "https://play.example.org"]];
  const [admits, refuses] = [await startRelay(t, { game: echo.address }, ...list), await startRelay(t, { game: echo.address }, ...foreign)];
  // To a page of another origin, `/transports` only reports the refusal, without the certificate hash for WebTransport.
  for (const transport of ["websocket", "webtransport"]) {
    assert.equal(await outcome(admits, transport), `${transport} local`);
    assert.equal(await outcome(refuses, transport), "origin-refused 4403", transport);
  }
  // Data channels do not transmit the origin, so a relay with a list of origins and without tokens offers no data
  // channels.
  for (const relay of [admits, refuses]) {
    const { webrtc } = await (await fetch(`http://${relay.address}/transports`)).json();
    assert.equal(webrtc, undefined);
  }
});

test("a page gets the code of a refusal over WebTransport and with automatic selection", async (t) => {
  const { page } = await startPage(t, await startEcho(t));
  const refused = (options) =>
    page.evaluate(async (options) => {
      const { connect } = await import("/dist/index.js");
      return connect("/ws", { timeoutMs: 60_000, ...options }).then(() => "", ({ code, relayCode }) => `${code} ${relayCode}`);
    }, options);
  assert.equal(await refused({ target: "none", transport: "webtransport" }), "relay-closed 4404");
  assert.equal(await refused({ target: "none" }), "relay-closed 4404");
});

test("Firefox uses WebTransport and a WebSocket", { timeout: 600_000 }, async (t) => {
  const script = async () => {
    const { connect } = await import("/dist/index.js");
    const summary = [];
    for (const transport of ["auto", "webtransport", "websocket"]) {
      const connection = await connect("/ws", { target: "game", transport, timeoutMs: 60_000 });
      connection.send(new Uint8Array(3_000).fill(0xfe));
      const { bytes } = await connection.receive();
      // Another transport may have opened first.
      while (transport === "auto" && connection.transport !== "webtransport") {
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
      summary.push(connection.transport, bytes.length);
      await connection.close();
    }
    return summary.join(" ");
  };
  const html = `<!doctype html><title>working</title><script type="module">
    (${script})().then((summary) => (document.title = "done " + summary), (error) => (document.title = "failed " + error));
  </script>`;
  const relay = await startSite(t, await startEcho(t), html);
  const firefox = await openFirefox();
  try {
    const title = await firefox.titleOf(`http://${relay.address}/`, /^(done|failed)/);
    assert.equal(title, "done webtransport 3000 webtransport 3000 websocket 3000");
  } finally {
    await firefox.close();
  }
});
