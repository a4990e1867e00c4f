// Run by paths.test.mjs on the client's machine, with the arguments SERVER TRANSPORT. `udp` connects directly from
// Node. The other transports use a relay that this script starts: `websocket` from Node, the rest from Chromium. For
// each line of its input, sends large messages in sequence and waits for their echoes. Prints `open` and `echoed`, each
// with the MTU.

import { createInterface } from "node:readline";

import { openWith } from "./package-page.mjs";
import { LIMIT_MS, startRelay } from "./support.mjs";

const COUNT = 5;
const LENGTH = 5_000;
/** The maximum number of times that a page is loaded. */
const LOADS = 5;

/** Runs in Node or in a page: opens a connection, and returns its MTU. */
async function open([module, url, transport, timeoutMs, WebSocket]) {
  const { connect } = await import(module);
  const connection = await connect(url, { target: "game", timeoutMs, ...(transport && { transport }), ...(WebSocket && { webSocket: WebSocket }) });
  globalThis.echoes = async ([count, length]) => {
    for (let number = 0; number < count; number++) {
      connection.send(Uint8Array.from({ length }, (_, index) => (index === 0 ? 0xfe : (index * 31 + number) & 0xff)));
      const { bytes } = await connection.receive();
      if (bytes.length !== length || bytes[length - 1] !== (((length - 1) * 31 + number) & 0xff)) throw new Error("the echo differs from the message");
    }
    return connection.stats().mtu;
  };
  return connection.stats().mtu;
}

async function openInNode(context, server) {
  const relay = await startRelay(context, { game: server });
  const { WebSocket } = await import("ws");
  console.log(`open ${await open(["rakwire", `ws://${relay.address}/ws`, "websocket", LIMIT_MS, WebSocket])}`);
  return (...args) => globalThis.echoes(...args);
}

async function openByUdp(_context, server) {
  console.log(`open ${await open(["rakwire", `udp://${server}`, undefined, LIMIT_MS])}`);
  return (...args) => globalThis.echoes(...args);
}

async function openInPage(context, server, transport) {
  const { page, url } = await openWith(context, { game: server });
  // Chromium cancels requests in progress when an interface appears, and it may notice the interfaces of this machine
  // late.
  const loads = () => page.evaluate(() => import("/dist/index.js").then(() => true, () => false));
  for (let attempts = 0; attempts < LOADS && !(await loads()); attempts++) {
    await page.reload();
  }
  console.log(`open ${await page.evaluate(open, ["/dist/index.js", url, transport, LIMIT_MS])}`);
  return (what) => page.evaluate((given) => globalThis.echoes(given), what);
}

const stops = [];
const context = { after: (stop) => stops.unshift(stop) };
async function stop() {
  for (const each of stops.splice(0)) {
    await each();
  }
}

process.on("SIGTERM", () => void stop().then(() => process.exit()));
const [server, transport] = process.argv.slice(2);
try {
  const openBy = { udp: openByUdp, websocket: openInNode }[transport] ?? openInPage;
  const echoes = await openBy(context, server, transport);
  for await (const _ of createInterface({ input: process.stdin })) {
    console.log(`echoed ${await echoes([COUNT, LENGTH])}`);
  }
} finally {
  await stop();
}
