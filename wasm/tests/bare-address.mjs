// Run by foreign.test.mjs in a network namespace. Creates a second namespace with a relay and a C++ server, connected
// by a veth pair. Loads a page over plain HTTP from the relay's IP address in the browser given as argument, and
// prints its title.

import { execFileSync, spawn } from "node:child_process";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { BROWSERS, folder, site } from "./foreign-page.mjs";
import { startCpp, startRelay } from "./support.mjs";

const NEAR = "10.77.0.1";
const FAR = "10.77.0.2";

const stops = [];
const context = { after: (stop) => stops.unshift(stop) };

const ip = (...args) => execFileSync("ip", args, { stdio: ["ignore", "inherit", "inherit"] });

/** Creates the second namespace; returns the prefix of commands that run in it. */
function makeFar() {
  // The namespace exists until the standard input of this process closes.
  const keeper = spawn("unshare", ["--net", "sh", "-c", "echo ready; exec cat"], { stdio: ["pipe", "pipe", "inherit"] });
  context.after(() => keeper.stdin.end());
  return new Promise((resolve, reject) => {
    keeper.once("error", reject);
    keeper.stdout.once("data", () => resolve({ pid: keeper.pid, enter: ["nsenter", `--net=/proc/${keeper.pid}/ns/net`] }));
  });
}

function connect(pid, enter) {
  const [program, ...args] = enter;
  const far = (...more) => execFileSync(program, [...args, "ip", ...more], { stdio: ["ignore", "inherit", "inherit"] });
  ip("link", "add", "near", "type", "veth", "peer", "name", "far", "netns", String(pid));
  // An IPv6 address that appears a second later is a network change to Chromium, which then cancels requests in
  // progress.
  ip("link", "set", "near", "addrgenmode", "none");
  far("link", "set", "far", "addrgenmode", "none");
  ip("address", "add", `${NEAR}/24`, "dev", "near");
  far("address", "add", `${FAR}/24`, "dev", "far");
  ["lo", "near"].forEach((device) => ip("link", "set", device, "up"));
  ["lo", "far"].forEach((device) => far("link", "set", device, "up"));
}

/** Starts a program in the second namespace. */
function there(directory, name, enter, program) {
  const path = join(directory, name);
  writeFileSync(path, `#!/bin/sh\nexec ${enter.join(" ")} "${program}" "$@"\n`);
  chmodSync(path, 0o755);
  return path;
}

async function main([browser]) {
  const { pid, enter } = await makeFar();
  connect(pid, enter);
  const programs = folder(context);
  const { RAKWIRE_RELAY_BIN: relayProgram, INTEROP_BIN_DIR: peers } = process.env;
  there(programs, "cpp-peer", enter, join(peers, "cpp-peer"));
  process.env.INTEROP_BIN_DIR = programs;
  process.env.RAKWIRE_RELAY_BIN = there(programs, "rakwire-relay", enter, relayProgram);
  const cpp = await startCpp(context);
  const relay = await startRelay(context, { game: cpp.address }, "--listen", `${FAR}:0`, "--serve", site(context, "webrtc"), "--allow-any-origin");
  const play = () => BROWSERS[browser](`http://${relay.address}/`);
  const title = await play();
  // Chromium cancels requests in progress when an interface appears, and it may notice the two veth interfaces late.
  return title.includes("Failed to fetch") ? play() : title;
}

try {
  console.log(await main(process.argv.slice(2)));
} finally {
  for (const stop of stops) {
    await stop();
  }
}
