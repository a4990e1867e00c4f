// Faults during an open connection: clock jumps, a closed page, a malicious relay, no network. The connection either
// continues, or reports a close event or an error with a code.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createSocket } from "node:dgram";
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { test } from "node:test";
import { WebSocket, WebSocketServer } from "ws";

import { connect } from "rakwire";

import { openPage } from "./browser.mjs";
import { serve } from "./bundlers/serve.mjs";
import { PROTOCOLS } from "./protocols.mjs";
import { LIMIT_MS, nextNumbers, numbered, pattern, program, startEcho, startRelay, until } from "./support.mjs";

/** The default options of connections in Node. */
const USUAL = { target: "game", webSocket: WebSocket, timeoutMs: LIMIT_MS };
const PACKAGE = fileURLToPath(new URL("..", import.meta.url));

/** Makes the clock jump, as after the suspension of a laptop. */
function jumpingClock(t) {
  const now = performance.now.bind(performance);
  let aheadMs = 0;
  t.mock.method(performance, "now", () => now() + aheadMs);
  return (ms) => (aheadMs += ms);
}

/** Starts a program; returns it with a function that waits for its output. */
async function startTalking(t, variable, ...args) {
  const child = spawn(program(variable, "Build it."), args, { stdio: ["pipe", "pipe", "pipe"], env: { ...process.env, RUST_LOG: "info" } });
  t.after(() => child.kill("SIGKILL"));
  let said = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (said += chunk));
  const says = async (words) => {
    const reported = until(() => words.test(said) || child.exitCode !== null, `the program prints ${words}`);
    await reported.catch(({ message }) => assert.fail(`${message}; ${said}`));
    assert.match(said, words);
    return words.exec(said);
  };
  const [, address] = await says(/listening on (?:http:\/\/)?(\S+)\n/);
  return { address, says, kill: (signal) => child.kill(signal) };
}

/** A page that can import the package. */
async function openPackage(t) {
  const folder = mkdtempSync(join(tmpdir(), "rakwire-bad-input-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  for (const part of ["dist", "pkg"]) {
    cpSync(join(PACKAGE, part), join(folder, part), { recursive: true });
  }
  writeFileSync(join(folder, "index.html"), "<!doctype html><title>rakwire</title>");
  const server = await serve(folder);
  t.after(() => server.stop());
  const page = await openPage(t);
  await page.goto(server.url);
  return page;
}

/**
 * A relay that forwards datagrams, and calls `spoil(socket)` before each datagram for the client. It accepts offered
 * subprotocols, and sends no control message `flow`.
 */
async function startHostileRelay(t, target, spoil) {
  const [host, port] = target.split(":");
  const server = new WebSocketServer({ host: "127.0.0.1", port: 0, handleProtocols: (offered) => [...offered][0] });
  server.on("connection", (socket) => {
    const udp = createSocket("udp4");
    udp.on("message", (datagram) => {
      spoil(socket);
      socket.send(datagram);
    });
    socket.on("message", (datagram) => udp.send(datagram, Number(port), host));
    socket.on("close", () => udp.close());
  });
  await new Promise((resolve) => server.once("listening", resolve));
  t.after(() => {
    server.clients.forEach((client) => client.terminate());
    server.close();
  });
  return `ws://127.0.0.1:${server.address().port}/ws`;
}

for (const protocol of PROTOCOLS) {
  test(`${protocol.name}: a clock jump closes a connection only if it exceeds a running timeout`, async (t) => {
    const jump = jumpingClock(t);
    const echo = await startEcho(t, ...protocol.echo);
    const relay = await startRelay(t, { game: echo.address });
    // Longer than the jumps plus the delays of a busy machine.
    const silenceTimeoutMs = 2 * LIMIT_MS;
    const connection = await connect(`ws://${relay.address}/ws`, { ...USUAL, silenceTimeoutMs, ...protocol.options });
    // RakNet's timeout runs only while an acknowledgement is outstanding. The Game Protocol times out any silent peer.
    const isPatient = protocol.name === "RakNet";
    for (const ms of isPatient ? [3_000, 3_600_000] : [3_000]) {
      await until(() => connection.stats().inFlight === 0, "all messages are acknowledged");
      jump(ms);
      connection.send(numbered(1), { reliability: "reliable" });
      assert.deepEqual(await nextNumbers(connection, 1), [1]);
    }
    for (const number of [2, 3, 4]) connection.send(numbered(number), { reliability: "reliable" });
    // Sends the messages before the jump; their acknowledgements arrive after it.
    await Promise.resolve();
    jump(5_000);
    assert.deepEqual((await nextNumbers(connection, 3)).sort(), [2, 3, 4]);
    if (!isPatient) {
      jump(3_600_000);
      connection.send(numbered(5));
      assert.equal((await connection.closed).code, "lost");
      return;
    }
    assert.equal((await connection.close()).code, "local");
  });

  test(`${protocol.name}: a sleep longer than the timeouts of the server and of the flow closes the connection with a reason`, async (t) => {
    const jump = jumpingClock(t);
    const echo = await startEcho(t, ...protocol.echo);
    const relay = await startRelay(t, { game: echo.address });
    const connection = await connect(`ws://${relay.address}/ws`, { ...USUAL, ...protocol.options });
    const interrupted = new Promise((resolve) => connection.addEventListener("interrupted", resolve));
    relay.stop();
    await interrupted;
    jump(3_600_000);
    const { code, reason } = await connection.closed;
    assert.ok(["relay-closed", "lost"].includes(code), code);
    assert.notEqual(reason, "");
    assert.throws(() => connection.send(numbered(1)), { code: "not-connected" });
  });

  test(`${protocol.name}: closing a page during a transfer frees its slot at the relay, and the server drops the player`, { timeout: 300_000 }, async (t) => {
    const echo = await startTalking(t, "RAKWIRE_BIN", "echo", "--listen", "127.0.0.1:0", ...protocol.echo);
    const relay = await startTalking(t, "RAKWIRE_RELAY_BIN", "--listen", "127.0.0.1:0", "--allow-any-origin", "--target", `game=${echo.address}`);
    const page = await openPackage(t);
    await page.evaluate(async ([url, options]) => {
      const { connect: open } = await import("/dist/index.js");
      const connection = await open(url, { target: "game", timeoutMs: 60_000, ...options });
      for (let sent = 0; sent < 20; sent++) connection.send(new Uint8Array(50_000).fill(0xfe), { reliability: "reliable" });
      await connection.receive();
    }, [`ws://${relay.address}/ws`, protocol.options]);
    await page.close();
    // The closed page sent no disconnect, so the server reports the player as timed out.
    await echo.says(/disconnected/);
    relay.kill("SIGTERM");
    const [, clients, flows] = await relay.says(/stopped: (\d+) clients of (\d+) flows/);
    assert.equal(clients, "0");
    assert.notEqual(flows, "0");
  });

  test(`${protocol.name}: messages are exchanged during a flood of invalid datagrams from a relay`, { timeout: 300_000 }, async (t) => {
    const echo = await startEcho(t, ...protocol.echo);
    // Datagrams that resemble the protocol's could close the connection or forge messages. This test sends only
    // datagrams that the client can recognise as invalid.
    const first = protocol.name === "RakNet" ? 0x84 : 0x82;
    const nonsense = pattern(1_400);
    nonsense[0] = first;
    const url = await startHostileRelay(t, echo.address, (socket) => {
      for (let time = 0; time < 20; time++) {
        socket.send(`{"type":"drops","to_client":{"queue_full":${time}},"to_server":null}`);
        socket.send(`{"type":"flow","resume":${time},"resume_within_ms":-1}`);
        socket.send(nonsense.subarray(0, 1 + 60 * time));
        socket.send(Uint8Array.of(first, 255, 255, 255, time));
      }
      socket.send(new Uint8Array(300_000).fill(0x84));
      socket.send("[".repeat(100_000));
      socket.send(new Uint8Array(0));
    });
    const connection = await connect(url, { ...USUAL, ...protocol.options });
    let reported = 0;
    connection.addEventListener("relaydrops", () => (reported += 1));
    for (let number = 0; number < 40; number++) {
      connection.send(numbered(number), { reliability: "reliable" });
      await sleep(5);
    }
    const numbers = await nextNumbers(connection, 40);
    assert.deepEqual(numbers.sort((a, b) => a - b), Array.from({ length: 40 }, (_, number) => number));
    // The relay sends a drop notice with each datagram. The client keeps the highest count.
    await until(() => connection.stats().relayDrops.toClient.queueFull === 19, "the client has the highest drop count of the relay");
    const { drops, relayDrops } = connection.stats();
    assert.ok(Object.values(drops).reduce((sum, count) => sum + count, 0) > 100, JSON.stringify(drops));
    assert.ok(reported > 0);
    assert.deepEqual(relayDrops, { toClient: { queueFull: 19 }, toServer: {} });
    await connection.close();
  });
}

test("connecting without a network fails with a code, and succeeds once the network is back", async (t) => {
  const echo = await startEcho(t);
  const relay = await startRelay(t, { game: echo.address }, "--allow-any-origin");
  const page = await openPackage(t);
  // The modules are loaded while the network still works, as in a page that was already open.
  await page.evaluate(() => Promise.all(["index", "slim"].map((name) => import(`/dist/${name}.js`))));
  const open = (name) => page.evaluate(async ([entry, url]) => {
    const { connect: from } = await import(`/dist/${entry}.js`);
    const wasm = entry === "slim" ? { wasm: "/pkg/rakwire.wasm" } : {};
    return from(url, { target: "game", timeoutMs: 60_000, ...wasm }).then((connection) => connection.close().then(({ code }) => code), ({ code }) => code);
  }, [name, `ws://${relay.address}/ws`]);
  await page.context().setOffline(true);
  assert.equal(await open("slim"), "wasm-unavailable");
  assert.equal(await open("index"), "relay-unreachable");
  await page.context().setOffline(false);
  assert.equal(await open("slim"), "local");
  assert.equal(await open("index"), "local");
});
