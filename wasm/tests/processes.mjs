// Real servers for tests, each stopped at the end of its test. Nothing here needs the npm package.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/**
 * The time limit in milliseconds for an event that must occur: much longer than the event takes, even on a busy
 * machine.
 */
export const LIMIT_MS = 60_000;
const START_MS = LIMIT_MS;
const POLL_MS = 10;

/** Waits until a condition, or its promise, is true. Fails after {@link LIMIT_MS}. */
export async function until(condition, what) {
  for (const end = Date.now() + LIMIT_MS; !(await condition()); await sleep(POLL_MS)) {
    assert.ok(Date.now() < end, `timed out after ${LIMIT_MS} ms while waiting until ${what}`);
  }
}

/** Returns the path of a program, or of a folder of programs, from an environment variable. */
export function program(variable, howTo) {
  const path = process.env[variable];
  if (!path || !existsSync(path)) {
    throw new Error(`${variable} must be the path of an existing program or folder, but is ${path ?? "not set"}. ${howTo}`);
  }
  return path;
}

function firstMatch(child, name, pattern, logged) {
  return new Promise((resolve, reject) => {
    let printed = "";
    const timer = setTimeout(() => reject(new Error(`${name} did not announce its address: ${printed}`)), START_MS);
    child.stdout.on("data", (chunk) => {
      printed += chunk;
      const found = pattern.exec(printed);
      if (found) {
        clearTimeout(timer);
        resolve(found[1]);
      }
    });
    child.on("error", reject);
    child.on("close", (code, signal) => reject(new Error(`${name} exited before it was ready (${signal ?? code}): ${printed}${logged()}`)));
  });
}

/**
 * Starts a program and waits until its output matches `pattern`. At the end of the test, sends it the signal `end`,
 * which a program with child processes must handle.
 */
export async function start(context, name, path, args, pattern, logs = false, end = "SIGKILL") {
  // Standard input stays open, because the interop peers exit when it closes.
  const child = spawn(path, args, { stdio: "pipe", env: { ...process.env, RUST_LOG: logs ? "info" : "error" } });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  /** Resolves when the program has exited. */
  const stop = (signal = "SIGKILL") => {
    child.kill(signal);
    return ended;
  };
  context.after(() => void stop(end));
  let text = "";
  child.stdout.on("data", (chunk) => (text += chunk));
  let logged = "";
  child.stderr.on("data", (chunk) => {
    logged += chunk;
    if (!logs) process.stderr.write(chunk);
  });
  const tell = (line) => child.stdin.write(`${line}\n`);
  return { address: await firstMatch(child, name, pattern, () => logged), tell, pid: child.pid, stop, printed: () => text, logged: () => logged };
}

/** Restarts a program at its previous address. Retries while another program occupies the address. */
export async function startAgain(start) {
  for (const end = Date.now() + LIMIT_MS; ; await sleep(10 * POLL_MS)) {
    try {
      return await start();
    } catch (error) {
      if (!error.message.includes("in use") || Date.now() >= end) throw error;
    }
  }
}

/**
 * Starts rakwire's echo server, which echoes every message with its reliability and channel. It listens on 127.0.0.1 by
 * default.
 */
export function startEcho(context, ...more) {
  const path = program("RAKWIRE_BIN", "Build it with `cargo build --release -p rakwire-cli`.");
  const listen = more.includes("--listen") ? [] : ["--listen", "127.0.0.1:0"];
  return start(context, "rakwire echo", path, ["echo", ...listen, ...more], /listening on (\S+)\n/);
}

/** Starts an echo server like {@link startEcho} that logs its connections. */
export function startLoggedEcho(context, ...more) {
  const path = program("RAKWIRE_BIN", "Build it with `cargo build --release -p rakwire-cli`.");
  return start(context, "rakwire echo", path, ["echo", "--listen", "127.0.0.1:0", ...more], /listening on (\S+)\n/, true);
}

/** Returns the output of the command-line tool, one JSON object. */
export function printsJson(...args) {
  const path = program("RAKWIRE_BIN", "Build it with `cargo build --release -p rakwire-cli`.");
  return JSON.parse(execFileSync(path, args, { encoding: "utf8" }));
}

/** Starts the server of a plugin example, which cargo builds into the folder of the command-line tool. */
export function startPluginExample(context, example, ...args) {
  const folder = dirname(program("RAKWIRE_BIN", "Build all with `cargo build --workspace --bins --examples`."));
  return start(context, example, join(folder, "examples", example), args, /listening on (\S+)\n/);
}

/** Starts the command-line tool, and waits until it listens. */
export function startListening(context, ...args) {
  const path = program("RAKWIRE_BIN", "Build it with `cargo build --release -p rakwire-cli`.");
  return start(context, `rakwire ${args[0]}`, path, [...args, "--listen", "127.0.0.1:0"], /listening on (\S+)\n/);
}

/** Starts the C++ RakNet server, which echoes every message reliable-ordered on channel 0. */
export async function startCpp(context, ...more) {
  const folder = program("INTEROP_BIN_DIR", "Make it with `interop/setup.sh cpp`, which prints what is in it.");
  const path = `${folder}/cpp-peer`;
  if (!existsSync(path)) throw new Error(`there is no ${path}. Make it with \`interop/setup.sh cpp\`.`);
  const server = await start(context, "cpp-peer", path, ["server", "--port", "0", ...more], /ready (\d+)\n/);
  return { ...server, address: `127.0.0.1:${server.address}` };
}

function runRelay(context, targets, more, logs) {
  const path = program("RAKWIRE_RELAY_BIN", "Build it with `cargo build --release -p rakwire-relay`.");
  const named = Object.entries(targets).flatMap(([name, address]) => ["--target", `${name}=${address}`]);
  const listen = more.includes("--listen") ? [] : ["--listen", "127.0.0.1:0"];
  const args = [...listen, ...named, ...more];
  return start(context, "rakwire-relay", path, args, /listening on https?:\/\/(\S+)\n/, logs);
}

/** Starts a relay with these targets by name. It listens on 127.0.0.1 by default. `address` is HOST:PORT. */
export function startRelay(context, targets, ...more) {
  return runRelay(context, targets, more, false);
}

/** Starts a relay like {@link startRelay}, with its metrics served at the HOST:PORT `admin`. */
export async function startMonitoredRelay(context, targets, ...more) {
  const relay = await runRelay(context, targets, ["--admin-listen", "127.0.0.1:0", ...more], true);
  // The log and the address arrive on different pipes, so the log may be late.
  const metrics = () => /\badmin=(\S+)\s/.exec(relay.logged());
  await until(metrics, "the relay logs the address of its metrics");
  return { ...relay, admin: metrics()[1] };
}
