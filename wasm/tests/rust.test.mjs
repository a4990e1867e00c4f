// The Rust API for browsers: the example `echo` in Chromium, through a real relay, to real servers.

import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { folderOf, keygen, rakwire, startSecureEcho } from "./keys.mjs";
import { openExamplePage } from "./rust-example.mjs";
import { startCpp, startEcho } from "./support.mjs";
import { startTcpWay } from "./way.mjs";

/** Opens a page of a relay. `play(work, target, ...)` calls the function `work` of the example in it. */
async function openExample(t, targets) {
  const { page } = await openExamplePage(t, targets);
  return (work, ...more) =>
    page.evaluate(
      async ([name, ...more]) => {
        const example = await import("/echo.js");
        await example.default();
        return example[name](`ws://${location.host}/ws`, ...more).catch((error) => `failed: ${error.message}`);
      },
      [work, ...more],
    );
}

test("a Rust program gets an error if its relay or server is missing, and every wait has a time limit", { timeout: 600_000 }, async (t) => {
  const gone = createSocket("udp4");
  await new Promise((resolve) => gone.bind(0, "127.0.0.1", resolve));
  const { port } = gone.address();
  await new Promise((resolve) => gone.close(resolve));
  const { page } = await openExamplePage(t, { dead: `127.0.0.1:${port}` });
  const outcomes = await page.evaluate(async () => {
    const example = await import("/echo.js");
    await example.default();
    const play = () => example.play(`ws://${location.host}/ws`, "dead", "websocket").then(() => "played", ({ message }) => message);
    const dead = await play();
    /** Returns a WebSocket class with instances that dispatch `event`, or no event. */
    const replaced = (event) =>
      class extends EventTarget {
        static OPEN = 1;
        readyState = 0;
        bufferedAmount = 0;
        constructor() {
          super();
          if (event) queueMicrotask(() => this[`on${event}`](new Event(event)));
        }
        close() {}
      };
    globalThis.WebSocket = replaced("error");
    const unreachable = await play();
    globalThis.WebSocket = replaced(undefined);
    // Makes the time limit of 15 s expire immediately.
    const { setTimeout } = globalThis;
    globalThis.setTimeout = (callback, ms) => setTimeout(callback, ms === 15_000 ? 0 : ms);
    return [dead, unreachable, await play()];
  });
  assert.match(outcomes[0], /nothing listens on its port \(code 4502\)/);
  assert.deepEqual(outcomes.slice(1), ["connection to the relay lost (code 1006)", "no connection within 15 s"]);
});

test("a Rust program exchanges messages with a rakwire server and with a C++ server", { timeout: 600_000 }, async (t) => {
  const [echo, cpp] = [await startEcho(t), await startCpp(t)];
  const play = await openExample(t, { game: echo.address, cpp: cpp.address });
  await t.test("a rakwire server", async () => assert.equal(await play("play", "game"), "echoed 6 and 150000 bytes"));
  await t.test("a C++ server", async () => assert.equal(await play("play", "cpp"), "echoed 6 and 150000 bytes"));
});

test("a Rust program pings, sends a password and waits for free memory", { timeout: 600_000 }, async (t) => {
  const echo = await startEcho(t, "--password", "secret", "--advertise", "a lobby");
  const play = await openExample(t, { game: echo.address });
  assert.match(await play("play_in_little_memory", "game"), /^a lobby; .*password/);
});

test("a Rust program does not resend messages that its WebSockets delay", { timeout: 600_000 }, async (t) => {
  const [raknet, game] = [await startEcho(t), await startEcho(t, "--protocol", "game")];
  const { page, relay } = await openExamplePage(t, { raknet: raknet.address, game: game.address });
  const way = await startTcpWay(t, relay);
  await page.evaluate(async (url) => {
    const example = await import("/echo.js");
    await example.default();
    globalThis.open = await example.open(url, "raknet", "game", "websocket");
  }, way.url);
  let again;
  // On a busy machine the delay may exceed a second, after which each client probes.
  for (let attempt = 0; attempt < 5 && again !== 0; attempt++) {
    const before = await page.evaluate(() => open.sent_again());
    way.pause();
    await page.evaluate(async () => {
      for (let sent = 0; sent < 20; sent++) {
        open.send();
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    });
    await sleep(300);
    way.resume();
    await page.evaluate(() => open.receive(20));
    again = (await page.evaluate(() => open.sent_again())) - before;
  }
  assert.equal(again, 0);
});

test("a Rust program continues in a tab without working timers", { timeout: 600_000 }, async (t) => {
  const [raknet, game] = [await startEcho(t), await startEcho(t, "--protocol", "game")];
  const { page, relay } = await openExamplePage(t, { raknet: raknet.address, game: game.address });
  await page.evaluate(async (url) => {
    const example = await import("/echo.js");
    await example.default();
    globalThis.open = await example.open(url, "raknet", "game", "websocket");
    // Timers of a hidden tab fire once a minute.
    globalThis.setTimeout = () => 0;
  }, `ws://${relay.address}/ws`);
  // Waits until the timers that were set earlier have fired. Timers set later never fire.
  await sleep(1_500);
  await page.evaluate(async () => {
    open.send();
    await open.receive(1);
  });
});

test("a plugin of a Rust program exchanges its own messages", { timeout: 600_000 }, async (t) => {
  const play = await openExample(t, { game: (await startEcho(t)).address });
  assert.equal(await play("play_with_plugin", "game"), "2 answers");
});

test("a Rust program opens a secure connection to a server with a known key", { timeout: 600_000 }, async (t) => {
  const { address, key } = await startSecureEcho(t);
  const play = await openExample(t, { game: address });
  assert.equal(await play("play_secure", "game", key), `${key}; the server has another public key`);
});

test("a connect token opens one connection of a Rust program", { timeout: 600_000 }, async (t) => {
  const tokenKey = join(folderOf(t), "token.key");
  rakwire("keygen", "--token", tokenKey);
  const { address, key } = await startSecureEcho(t, "--token-key", tokenKey);
  const client = keygen(t);
  const claims = ["--user", "7", "--client-key", client.key, "--server", `${key}@game`];
  const token = rakwire("token", "--token-key", tokenKey, ...claims);
  const play = await openExample(t, { game: address });
  assert.match(await play("play_with_token", token, readFileSync(client.file, "utf8")), /^the server.*connect token/);
});

test("a Rust program uses the Game Protocol", { timeout: 600_000 }, async (t) => {
  const echo = await startEcho(t, "--protocol", "game");
  const play = await openExample(t, { game: echo.address });
  assert.equal(await play("play_game_protocol", "game"), "echoed 5 and 129024 bytes");
});

test("a Rust program gets the reason why it cannot connect, with both protocols", { timeout: 600_000 }, async (t) => {
  const silent = createSocket("udp4");
  t.after(() => silent.close());
  await new Promise((resolve) => silent.bind(0, "127.0.0.1", resolve));
  const play = await openExample(t, { gone: "127.0.0.1:9", silent: `127.0.0.1:${silent.address().port}` });
  assert.match(await play("play_in_little_memory", "missing"), /^failed: relay closed: unknown target 'missing'/);
  for (const work of ["play", "play_game_protocol"]) {
    assert.equal(await play(work, "silent"), "failed: the server does not answer");
    assert.match(await play(work, "gone"), /^failed: relay closed: .* nothing listens on its port \(code 4502\)$/);
    assert.match(await play(work, "missing"), /^failed: relay closed: unknown target 'missing'.*\(code 4404\)$/);
  }
});
