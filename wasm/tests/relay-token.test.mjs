// Signed tokens that a relay requires, for each transport of a page and for pings.

import assert from "node:assert/strict";
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { WebSocket } from "ws";

import { connect, discover, ping } from "rakwire";

import { openPage } from "./browser.mjs";
import { relayTokens } from "./keys.mjs";
import { echoOf, fails, LIMIT_MS, pattern, startEcho, startRelay } from "./support.mjs";

const PACKAGE = fileURLToPath(new URL("..", import.meta.url));
const NO_TOKEN = 4401;

/** Starts a relay that requires tokens and serves the package. Returns it with a function that creates tokens. */
async function startWithTokens(t) {
  const folder = mkdtempSync(join(tmpdir(), "rakwire-token-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  for (const part of ["dist", "pkg"]) {
    cpSync(join(PACKAGE, part), join(folder, part), { recursive: true });
  }
  writeFileSync(join(folder, "index.html"), "<!doctype html><title>rakwire</title>");
  const { file, token } = relayTokens(t);
  const echo = await startEcho(t, "--advertise", "a lobby");
  const relay = await startRelay(t, { game: echo.address }, "--serve", folder, "--token-key", file);
  return { relay, url: `ws://${relay.address}/ws`, token };
}

test("a program is admitted only with a token", async (t) => {
  const { url, token } = await startWithTokens(t);
  const options = { target: "game", webSocket: WebSocket, timeoutMs: LIMIT_MS };
  const refused = (error) => fails("relay-closed", /token/)(error) && error.relayCode === NO_TOKEN;
  await assert.rejects(connect(url, options), refused);
  await assert.rejects(connect(url, { ...options, token: `${token()}x` }), refused);
  const connection = await connect(url, { ...options, token: token() });
  t.after(() => connection.close());
  assert.deepEqual((await echoOf(connection, pattern(500))).bytes, pattern(500));
});

test("pings carry a token, and pings without a token are refused with an error", async (t) => {
  const { url, token } = await startWithTokens(t);
  const options = { webSocket: WebSocket, timeoutMs: LIMIT_MS };
  const { data } = await ping(url, { ...options, target: "game", token: token() });
  assert.equal(new TextDecoder().decode(data), "a lobby");
  const reported = [];
  const onUnavailable = (target, { relayCode }) => reported.push([target, relayCode]);
  assert.deepEqual(await discover(url, { ...options, targets: ["game"], onUnavailable }), []);
  assert.deepEqual(reported, [["game", NO_TOKEN]]);
});

test("a page is admitted over each transport only with a token", async (t) => {
  const { relay, token } = await startWithTokens(t);
  const page = await openPage(t);
  await page.goto(`http://${relay.address}/`);
  const outcome = (transport, given) =>
    page.evaluate(async ([wanted, token]) => {
      const { connect } = await import("/dist/index.js");
      const options = { target: "game", transport: wanted, timeoutMs: 60_000, ...(token && { token }) };
      try {
        const connection = await connect("/ws", options);
        connection.send(new Uint8Array(3_000).fill(0xfe));
        const { bytes } = await connection.receive();
        const { transport } = connection;
        await connection.close();
        return `${transport} ${bytes.length}`;
      } catch ({ code, relayCode }) {
        return `${code} ${relayCode}`;
      }
    }, [transport, given]);
  for (const transport of ["websocket", "webtransport", "webrtc"]) {
    assert.equal(await outcome(transport, token()), `${transport} 3000`);
    assert.equal(await outcome(transport), `relay-closed ${NO_TOKEN}`, transport);
  }
});
