// Makes the attempts of `table.mjs` in the current runtime, and prints their rows as JSON.

import process from "node:process";

import * as rakwire from "../../dist/node/index.js";
import { isTransient } from "../../dist/reconnect.js";
import { table } from "./table.mjs";

const { endpoints, control, needsWebSocket } = JSON.parse(process.argv[2]);
const options = needsWebSocket ? { webSocket: (await import("ws")).WebSocket } : {};
const rows = await table({ ...rakwire, isTransient }, endpoints, {
  options,
  udp: "Deno" in globalThis ? "without ICMP" : "with ICMP",
  control: async (what) => void (await (await fetch(`${control}${what}`)).text()),
});
console.log(JSON.stringify(rows));
process.exit(0);
