// Runs the snowball fight in Chromium: server and watching client are native programs, and a page plays through the
// relay. `cargo xtask check --only bevy` builds the programs and the page.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { openPage } from "./browser.mjs";
import { program, start, startRelay, until } from "./processes.mjs";

const LIMIT = { timeout: 600_000 };
const HOW_TO = "Run `cargo xtask check --only bevy`.";
/** The time in seconds after which the native programs exit. */
const SECONDS = "600";

function run(t, pattern, ...args) {
  return start(t, "snowballs", program("SNOWBALLS_BIN", HOW_TO), args, pattern);
}

/** Creates a private key in a file, which is removed at the end of the test; returns the path and the public key. */
function createKey(t) {
  const folder = mkdtempSync(join(tmpdir(), "rakwire-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "server.key");
  const [key] = execFileSync(program("RAKWIRE_BIN", HOW_TO), ["keygen", file], { encoding: "utf8" }).split("\n");
  return { file, key };
}

/**
 * Starts a server, a watching client, a relay that serves the page, and the page in Chromium. With a `key` all
 * connections are secure, and the page trusts the public key `pinned`.
 */
async function play(t, options = [], key = undefined, pinned = key?.key) {
  const server = await run(t, /listening on (\S+)\n/, "server", "127.0.0.1:0", SECONDS, ...(key ? [key.file] : []));
  const watcher = await run(t, /(connected)\n/, "watch", server.address, SECONDS, ...(key ? [key.key] : []));
  const targets = { game: `${server.address},kind=raknet` };
  const page = await openPage(t);
  const relay = await startRelay(t, targets, "--serve", program("SNOWBALLS_PAGE", HOW_TO), "--drain-timeout", "0s", ...options);
  const errors = [];
  page.on("pageerror", (error) => errors.push(error));
  await page.goto(`http://${relay.address}/${pinned ? `?key=${pinned}` : ""}`);
  return { page, relay, watcher, errors, status: () => page.textContent("#status") };
}

/** Waits until the page has joined the game; returns its player number and its transport. */
async function joined({ page, status }) {
  const playing = /^player (\d+) by (\w+) sees (\d+) entities$/;
  await until(async () => Number(playing.exec(await status())?.[3] ?? 0) > 300, "the page sees the world");
  const [, player, transport] = playing.exec(await status());
  // The player of the page is drawn in the middle of the picture.
  const pixel = await page.evaluate(() => [...document.querySelector("canvas").getContext("2d").getImageData(400, 250, 1, 1).data]);
  assert.deepEqual(pixel, [0x12, 0x57, 0xc7, 0xff]);
  return { player, transport };
}

/** Walks east and stops; waits until the watching client has seen both. */
async function walk({ page, watcher }, player) {
  for (const [key, direction] of [["down", "EAST"], ["up", "(empty)"]]) {
    await page.keyboard[key]("ArrowRight");
    await until(() => watcher.printed().includes(`player ${player} walks ${direction}\n`), `the other client sees ${direction}`);
  }
}

/** Stops the relay; returns the status that the page then shows. */
async function end({ relay, status }) {
  await relay.stop("SIGTERM");
  await until(async () => (await status()).startsWith("disconnected"), "the page reports the disconnect");
  return status();
}

const ENDED = "disconnected: relay closed: relay is shutting down (code 1001)";

test("a page plays by WebTransport, is seen by another client, and reports when the relay stops", LIMIT, async (t) => {
  const game = await play(t);
  const { player, transport } = await joined(game);
  assert.equal(transport, "WebTransport");
  await walk(game, player);
  assert.equal(await end(game), ENDED);
  assert.deepEqual(game.errors, []);
});

test("a page plays by a WebSocket when the relay has no WebTransport", LIMIT, async (t) => {
  const game = await play(t, ["--webtransport", "off"]);
  const { player, transport } = await joined(game);
  assert.equal(transport, "WebSocket");
  await walk(game, player);
  assert.equal(await end(game), ENDED);
  assert.deepEqual(game.errors, []);
});

test("a page reports that the relay has no such target", LIMIT, async (t) => {
  const { page, relay, status } = await play(t);
  await page.goto(`http://${relay.address}/?target=missing`);
  await until(async () => (await status()).startsWith("disconnected"), "the page reports the unknown target");
  assert.match(await status(), /^disconnected: relay closed: unknown target 'missing'.* \(code 4404\)$/);
});

for (const [transport, options] of [["WebTransport", []], ["WebSocket", ["--webtransport", "off"]]]) {
  test(`a page plays by ${transport} on a secure server with a pinned key`, LIMIT, async (t) => {
    const game = await play(t, options, createKey(t));
    const { player, transport: used } = await joined(game);
    assert.equal(used, transport);
    await walk(game, player);
    assert.equal(await end(game), ENDED);
    assert.deepEqual(game.errors, []);
  });

  test(`a page that pins a wrong key or none shows why it is not connected by ${transport}`, LIMIT, async (t) => {
    const game = await play(t, options, createKey(t), createKey(t).key);
    const refused = async () => (await game.status()).startsWith("disconnected");
    await until(refused, "the page reports the wrong key");
    assert.equal(await game.status(), "disconnected: the server has another public key");
    await game.page.goto(`http://${game.relay.address}/`);
    await until(refused, "the page reports that the server requires security");
    assert.equal(await game.status(), "disconnected: the server requires a secure connection");
    assert.deepEqual(game.errors, []);
  });
}
