// Measures the package in Chromium: the cost of a message, the effect of a busy page on the round-trip time with and
// without a worker, and the download size compared with other libraries. Prints tables with the goals, and writes
// ../target/bench/npm.json. `--quick` measures briefly, as a smoke test, and writes npm-quick.json.

import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { CLIENTS, loadedBytes } from "../clients.mjs";
import { serve } from "../tests/bundlers/serve.mjs";
import { launch } from "../tests/browser.mjs";
import { startEcho, startRelay } from "../tests/support.mjs";
import { goals, table } from "./goals.mjs";

const PACKAGE = fileURLToPath(new URL("..", import.meta.url));
const isQuick = process.argv.includes("--quick");
const RESULT = fileURLToPath(new URL(`../../target/bench/npm${isQuick ? "-quick" : ""}.json`, import.meta.url));
const SAMPLE_MS = isQuick ? 1_500 : 10_000;
const ROUNDS = isQuick ? 200 : 2_000;

const stops = [];
const context = { after: (stop) => stops.push(stop) };

/** Prepares a folder to serve: the package, and a WebAssembly module with peers that also accept connections. */
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

/**
 * Returns the median time to send and receive a message of 100 bytes between two peers of one page, in microseconds.
 */
async function messageCost(page, protocol) {
  return page.evaluate(
    async ([name, rounds]) => {
      const [{ createPeer }, { instantiate, peerClasses }] = await Promise.all([import("/dist/peer.js"), import("/dist/rust.js")]);
      const wasm = await (await fetch("/server/accepting.wasm")).arrayBuffer();
      const rust = instantiate(await WebAssembly.compile(wasm), peerClasses);
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
        // Pacing delays the last messages. This delay is not a cost of a message.
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

/**
 * Runs before the script of a worker: records when a message for the server arrives in the worker, and when its echo is
 * posted to the page.
 */
function instrument() {
  const [sent, trips] = [new Map(), []];
  const tell = self.postMessage.bind(self);
  const numberOf = ({ bytes }) => new DataView(bytes.buffer, bytes.byteOffset).getUint32(1);
  self.addEventListener("message", ({ data }) => {
    if (data.type === "send") {
      data.messages.forEach((message) => sent.set(numberOf(message), performance.now()));
    } else if (data.type === "trips") {
      tell({ session: 0, type: "trips", trips });
    }
  });
  self.postMessage = (told, transfer) => {
    if (told.type === "messages") {
      told.messages.forEach((message) => trips.push(performance.now() - sent.get(numberOf(message))));
    }
    tell(told, transfer);
  };
}

/**
 * Returns round-trip times of a connection while the page is blocked for 50 ms of every 100 ms. `connection` holds the
 * round-trip times of echoes measured in the thread of the connection, and `application` those measured in the page.
 * `smoothed` is the value of `stats()`, which includes the acknowledgement delay of the server.
 */
async function roundTrips(page, relay, protocol, inWorker) {
  return page.evaluate(
    async ([url, name, usesWorker, sampleMs, source]) => {
      const [{ connect }, { createWorker }] = await Promise.all([import("/dist/index.js"), import("/dist/worker.js")]);
      let thread;
      const start = (text) => (thread = new Worker(URL.createObjectURL(new Blob([`(${source})();\n${text}`], { type: "text/javascript" }))));
      const text = await (await fetch("/pkg/worker.js")).text();
      const worker = usesWorker ? createWorker(() => start(text)) : undefined;
      const connection = await connect(url, { target: name, protocol: name, ...(worker && { worker }) });
      const [sent, application, smoothed] = [[], [], []];
      connection.onMessage = ({ bytes }) => {
        application.push(performance.now() - sent[new DataView(bytes.buffer, bytes.byteOffset).getUint32(1)]);
      };
      const block = setInterval(() => {
        for (const end = performance.now() + 50; performance.now() < end; );
      }, 100);
      const send = setInterval(() => {
        const message = new Uint8Array(100).fill(0xfe);
        new DataView(message.buffer).setUint32(1, sent.length);
        sent.push(performance.now());
        connection.send(message);
      }, 20);
      const sample = setInterval(() => smoothed.push(connection.stats().roundTripMs), 10);
      await new Promise((resolve) => setTimeout(resolve, sampleMs));
      [block, send, sample].forEach(clearInterval);
      const ofThread = new Promise((resolve) => thread?.addEventListener("message", ({ data }) => data.type === "trips" && resolve(data.trips)));
      thread?.postMessage({ type: "trips" });
      const trips = { connection: usesWorker ? await ofThread : application, application, smoothed };
      await connection.close();
      const percentiles = (times) => {
        const sorted = times.filter((ms) => ms > 0).sort((a, b) => a - b);
        const at = (share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
        return { p50: at(0.5), p99: at(0.99) };
      };
      return Object.fromEntries(Object.entries(trips).map(([what, times]) => [what, percentiles(times)]));
    },
    [`ws://${relay.address}/ws`, protocol, inWorker, SAMPLE_MS, instrument.toString()],
  );
}

async function main() {
  const folder = prepare();
  // Without these headers, a page has a clock resolution of 100 µs.
  const pages = await serve(folder, { "cross-origin-opener-policy": "same-origin", "cross-origin-embedder-policy": "require-corp" });
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
  for (const [name, statement] of Object.entries(CLIENTS)) {
    result.loaded_gzip[name] = await loadedBytes(statement);
  }
  result.goals = goals(result);
  mkdirSync(join(RESULT, ".."), { recursive: true });
  writeFileSync(RESULT, `${JSON.stringify(result, null, 2)}\n`);
  console.log(tables(result));
}

/** Returns the results as tables. */
function tables({ message_us: messages, round_trip_ms: trips, loaded_gzip: loaded, goals: reached }) {
  const lines = ["| 100 bytes sent and received | median µs |", "|---|---|"];
  Object.entries(messages).forEach(([protocol, us]) => lines.push(`| ${protocol} | ${us.toFixed(2)} |`));
  lines.push("", "| round trip in ms | page p50 | page p99 | worker p50 | worker p99 | p99, worker of page |", "|---|---|---|---|---|---|");
  for (const [protocol, { page, worker }] of Object.entries(trips)) {
    for (const what of ["connection", "smoothed", "application"]) {
      const [there, here] = [page[what], worker[what]];
      const cells = [there.p50, there.p99, here.p50, here.p99].map((ms) => ms.toFixed(1));
      lines.push(`| ${protocol}, ${what} | ${cells.join(" | ")} | ${((100 * here.p99) / there.p99).toFixed(0)} % |`);
    }
  }
  lines.push("", "| what a page loads | bytes with gzip |", "|---|---|");
  Object.entries(loaded).forEach(([name, bytes]) => lines.push(`| ${name} | ${bytes.toLocaleString("en")} |`));
  return [...lines, "", table(reached)].join("\n");
}

try {
  await main();
} finally {
  for (const stop of stops.reverse()) {
    await stop();
  }
}
