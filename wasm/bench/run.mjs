// Measures the package in Chromium: what a message costs, what a page that is busy does to the round-trip time with and
// without a worker, and how much a page has to load beside other libraries. Prints tables, and writes ../target/bench/npm.json.
// `--quick` measures shortly, to see that it works.

import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

import { build } from "esbuild";

import { serve } from "../tests/bundlers/serve.mjs";
import { launch } from "../tests/browser.mjs";
import { startEcho, startRelay } from "../tests/support.mjs";

const PACKAGE = fileURLToPath(new URL("..", import.meta.url));
const RESULT = fileURLToPath(new URL("../../target/bench/npm.json", import.meta.url));
const isQuick = process.argv.includes("--quick");
const SAMPLE_MS = isQuick ? 1_500 : 10_000;
const ROUNDS = isQuick ? 200 : 2_000;

const stops = [];
const context = { after: (stop) => stops.push(stop) };

/** A folder that a server for pages can serve: the package, and the WebAssembly whose peers also accept connections. */
function prepare() {
  const folder = mkdtempSync(join(tmpdir(), "rakwire-bench-"));
  stops.push(() => rmSync(folder, { recursive: true, force: true }));
  for (const part of ["dist", "pkg"]) {
    cpSync(join(PACKAGE, part), join(folder, part), { recursive: true });
  }
  execFileSync(process.execPath, ["build.mjs", "--server", join(folder, "server")], { cwd: PACKAGE, stdio: ["ignore", "inherit", "inherit"] });
  writeFileSync(join(folder, "index.html"), "<!doctype html><title>rakwire</title>");
  return folder;
}

/** The median time of sending a message of 100 bytes and receiving it, between two peers of one page, in microseconds. */
async function messageCost(page, protocol) {
  return page.evaluate(
    async ([name, rounds]) => {
      const [{ createPeer }, { instantiate }] = await Promise.all([import("/dist/peer.js"), import("/dist/instance.js")]);
      const wasm = await (await fetch("/server/server.wasm")).arrayBuffer();
      const rust = instantiate(await WebAssembly.compile(wasm));
      const settings = { protocol: name, protocolVersion: 6, progressInterval: 0, password: new Uint8Array(0), memory: {} };
      const [client, server] = [createPeer(rust, settings), createPeer(rust, settings)];
      let [open, received] = [0, 0];
      const told = { onConnected: () => open++, onMessage: () => received++, onFailed: console.error, onEnded: console.error };
      const pump = (from, to, now) => {
        for (let datagram = from.pollTransmit(now); datagram !== undefined; datagram = from.pollTransmit(now)) {
          to.handle(datagram, now);
        }
        while (to.pollEvent(told));
      };
      const exchange = () => {
        const now = performance.now();
        client.handleTimeout(now);
        server.handleTimeout(now);
        pump(client, server, now);
        pump(server, client, now);
      };
      client.connect(performance.now());
      for (const end = performance.now() + 5_000; open < 2 && performance.now() < end; ) {
        exchange();
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
      const message = new Uint8Array(100).fill(0xfe);
      const BATCH = 100;
      const times = [];
      for (let round = 0; round < rounds; round++) {
        const before = performance.now();
        for (let sent = 0; sent < BATCH; sent++) {
          client.send(message, 2 | (2 << 3), before);
        }
        exchange();
        times.push(((performance.now() - before) * 1_000) / BATCH);
        // Pacing lets the rest go a little later, which is no cost of a message.
        for (const end = performance.now() + 1_000; received < (round + 1) * BATCH && performance.now() < end; ) {
          exchange();
        }
        if (round % 50 === 49) {
          await new Promise((resolve) => setTimeout(resolve, 0));
        }
      }
      times.sort((a, b) => a - b);
      return { median: times[times.length >> 1], received, expected: rounds * BATCH };
    },
    [protocol, ROUNDS],
  );
}

/** Round-trip times of a connection whose page is blocked for 50 ms in every 100. */
async function roundTrips(page, relay, protocol, inWorker) {
  return page.evaluate(
    async ([url, name, usesWorker, sampleMs]) => {
      const { connect } = await import("/dist/index.js");
      const worker = usesWorker ? (await import("/dist/worker.js")).worker : undefined;
      const connection = await connect(url, { target: name, protocol: name, ...(worker && { worker }) });
      connection.onMessage = () => undefined;
      const samples = [];
      const message = new Uint8Array(100).fill(0xfe);
      const block = setInterval(() => {
        for (const end = performance.now() + 50; performance.now() < end; );
      }, 100);
      const send = setInterval(() => connection.send(message), 20);
      const sample = setInterval(() => samples.push(connection.stats().roundTripMs), 10);
      await new Promise((resolve) => setTimeout(resolve, sampleMs));
      [block, send, sample].forEach(clearInterval);
      await connection.close();
      const measured = samples.filter((ms) => ms > 0).sort((a, b) => a - b);
      const at = (share) => measured[Math.min(measured.length - 1, Math.floor(measured.length * share))];
      return { p50: at(0.5), p99: at(0.99) };
    },
    [`ws://${relay.address}/ws`, protocol, inWorker, SAMPLE_MS],
  );
}

/** What a page loads for a client, minified and with gzip. */
async function loadedBytes(statement) {
  const stdin = { contents: statement, resolveDir: join(PACKAGE, "tests/bundlers"), sourcefile: "page.js" };
  const options = { stdin, bundle: true, minify: true, format: "esm", target: "es2022", write: false, logLevel: "error", alias: { rakwire: PACKAGE } };
  const { outputFiles } = await build(options);
  return gzipSync(outputFiles[0].contents, { level: 9 }).length;
}

async function main() {
  const folder = prepare();
  const pages = await serve(folder);
  stops.push(pages.stop);
  const [raknet, game] = [await startEcho(context), await startEcho(context, "--protocol", "game")];
  const relay = await startRelay(context, { raknet: raknet.address, game: game.address });
  const browser = await launch();
  stops.push(() => browser.close());
  const result = { message_us: {}, round_trip_ms: {}, loaded_gzip: {} };
  for (const protocol of ["raknet", "game"]) {
    const page = await browser.newPage();
    await page.goto(pages.url);
    const { median, received, expected } = await messageCost(page, protocol);
    if (received !== expected) {
      throw new Error(`${protocol}: ${received} of ${expected} messages arrived`);
    }
    result.message_us[protocol] = median;
    const [inPage, inWorker] = [await roundTrips(page, relay, protocol, false), await roundTrips(page, relay, protocol, true)];
    result.round_trip_ms[protocol] = { page: inPage, worker: inWorker };
    await page.close();
  }
  const log = "globalThis.page = ";
  result.loaded_gzip = {
    "rakwire": await loadedBytes(`import { connect } from "rakwire/dist/index.js"; ${log} connect;`),
    "rakwire/raknet": await loadedBytes(`import { connect } from "rakwire/dist/raknet.js"; ${log} connect;`),
    "rakwire/game-protocol": await loadedBytes(`import { connect } from "rakwire/dist/game-protocol.js"; ${log} connect;`),
    "@geckos.io/client": await loadedBytes(`import { geckos } from "@geckos.io/client"; ${log} geckos;`),
    "colyseus.js": await loadedBytes(`import { Client } from "colyseus.js"; ${log} Client;`),
    "a plain WebSocket": await loadedBytes(`${log} (url) => new WebSocket(url);`),
  };
  mkdirSync(join(RESULT, ".."), { recursive: true });
  writeFileSync(RESULT, `${JSON.stringify(result, null, 2)}\n`);
  print(result);
}

function print({ message_us: messages, round_trip_ms: trips, loaded_gzip: loaded }) {
  console.log("| 100 bytes sent and received | median µs |\n|---|---|");
  Object.entries(messages).forEach(([protocol, us]) => console.log(`| ${protocol} | ${us.toFixed(2)} |`));
  console.log("\n| round-trip time, page blocked 50 ms in every 100 | page p50 | page p99 | worker p50 | worker p99 |\n|---|---|---|---|---|");
  for (const [protocol, { page, worker }] of Object.entries(trips)) {
    console.log(`| ${protocol} | ${[page.p50, page.p99, worker.p50, worker.p99].map((ms) => ms.toFixed(1)).join(" | ")} |`);
  }
  console.log("\n| what a page loads | bytes with gzip |\n|---|---|");
  Object.entries(loaded).forEach(([name, bytes]) => console.log(`| ${name} | ${bytes.toLocaleString("en")} |`));
}

try {
  await main();
} finally {
  for (const stop of stops.reverse()) {
    await stop();
  }
}
