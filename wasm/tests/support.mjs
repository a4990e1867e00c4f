// Real servers for the tests, each stopped at the end of its test; messages; checks.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { RakwireError } from "rakwire";

/** For how long a test waits for what must happen: much longer than it takes on a machine that does other work as well. */
export const LIMIT_MS = 60_000;
const START_MS = LIMIT_MS;
const POLL_MS = 10;
/** The time after which what may be lost is sent again. */
const REPEAT_MS = 1_000;

/** Waits until a condition holds, or a promise of it, which must happen. */
export async function until(condition, what) {
  for (const end = Date.now() + LIMIT_MS; !(await condition()); await sleep(POLL_MS)) {
    assert.ok(Date.now() < end, `it never happens: ${what}`);
  }
}

/** A program, or a folder of them, that an environment variable names. */
export function program(variable, howTo) {
  const path = process.env[variable];
  if (!path || !existsSync(path)) {
    throw new Error(`${variable} must name what exists (now: ${path ?? "unset"}). ${howTo}`);
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
    child.on("close", (code, signal) => reject(new Error(`${name} ended at once (${signal ?? code}): ${printed}${logged()}`)));
  });
}

/** Starts a program, which says by `pattern` that it is ready, and ends it with the test by `end`: one with programs of its own has to hear it. */
export async function start(context, name, path, args, pattern, logs = false, end = "SIGKILL") {
  // Standard input stays open, because the interop peers exit at its end.
  const child = spawn(path, args, { stdio: "pipe", env: { ...process.env, RUST_LOG: logs ? "info" : "error" } });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  /** Completes when it has ended. */
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

/** Starts a program at an address that it has had before, and that something else may have for a moment. */
export async function startAgain(start) {
  for (const end = Date.now() + LIMIT_MS; ; await sleep(10 * POLL_MS)) {
    try {
      return await start();
    } catch (error) {
      if (!error.message.includes("in use") || Date.now() >= end) throw error;
    }
  }
}

/** Our echo server: sends every message back with its reliability and channel. It listens on 127.0.0.1 unless told otherwise. */
export function startEcho(context, ...more) {
  const path = program("RAKWIRE_BIN", "Build it with `cargo build --release -p rakwire-cli`.");
  const listen = more.includes("--listen") ? [] : ["--listen", "127.0.0.1:0"];
  return start(context, "rakwire echo", path, ["echo", ...listen, ...more], /listening on (\S+)\n/);
}

/** As `startEcho`, with a log that says who connects. */
export function startLoggedEcho(context, ...more) {
  const path = program("RAKWIRE_BIN", "Build it with `cargo build --release -p rakwire-cli`.");
  return start(context, "rakwire echo", path, ["echo", "--listen", "127.0.0.1:0", ...more], /listening on (\S+)\n/, true);
}

/** What the command-line tool prints as one JSON object. */
export function printsJson(...args) {
  const path = program("RAKWIRE_BIN", "Build it with `cargo build --release -p rakwire-cli`.");
  return JSON.parse(execFileSync(path, args, { encoding: "utf8" }));
}

/** A server of an example of the plugins, which cargo puts beside the command-line tool. */
export function startPluginExample(context, example, ...args) {
  const folder = dirname(program("RAKWIRE_BIN", "Build all with `cargo build --workspace --bins --examples`."));
  return start(context, example, join(folder, "examples", example), args, /listening on (\S+)\n/);
}

/** The command-line tool, when it listens. */
export function startListening(context, ...args) {
  const path = program("RAKWIRE_BIN", "Build it with `cargo build --release -p rakwire-cli`.");
  return start(context, `rakwire ${args[0]}`, path, [...args, "--listen", "127.0.0.1:0"], /listening on (\S+)\n/);
}

/** The C++ RakNet server: sends every message back reliable-ordered on channel 0. */
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

/** A relay with these targets by name. It listens on 127.0.0.1 unless told otherwise. `address` is HOST:PORT. */
export function startRelay(context, targets, ...more) {
  return runRelay(context, targets, more, false);
}

/** As `startRelay`, with the HOST:PORT that has the metrics as `admin`. */
export async function startMonitoredRelay(context, targets, ...more) {
  const relay = await runRelay(context, targets, ["--admin-listen", "127.0.0.1:0", ...more], true);
  // What the log says comes by another pipe than the address.
  const told = () => /\badmin=(\S+)\s/.exec(relay.logged());
  await until(told, "the relay says where its metrics are");
  return { ...relay, admin: told()[1] };
}

/** A message of this length with a byte pattern. */
export function pattern(length) {
  return Uint8Array.from({ length }, (_, index) => (index === 0 ? 0xfe : (index * 31 + (index >> 8)) & 0xff));
}

/** A message with a number. */
export function numbered(number) {
  return Uint8Array.of(0xfe, number >> 8, number & 0xff);
}

/** The next message, which must come. */
export async function next(connection) {
  const { value, done } = await connection.messages({ signal: AbortSignal.timeout(LIMIT_MS) }).next();
  assert.ok(!done, "the connection ended");
  return value;
}

/** Sends a message until it comes back, as an unreliable one may be lost. Returns the echo, and how often it was sent. */
export async function echoOf(connection, bytes, options = {}) {
  let sent = 0;
  const send = () => {
    connection.send(bytes, options);
    sent += 1;
  };
  send();
  const repeat = options.reliability?.startsWith("unreliable") ? setInterval(send, REPEAT_MS) : undefined;
  try {
    for (;;) {
      const echo = await next(connection);
      // One of another length answers an earlier message that was sent again.
      if (echo.bytes.length === bytes.length) {
        return { ...echo, sent };
      }
    }
  } finally {
    clearInterval(repeat);
  }
}

/** The numbers of the next messages. */
export async function nextNumbers(connection, count) {
  const numbers = [];
  while (numbers.length < count) {
    const { bytes } = await next(connection);
    numbers.push((bytes[1] << 8) | bytes[2]);
  }
  return numbers;
}

/** Whether the server has got all of a burst, and its echoes fill the queue of a connection that nobody reads. */
export function hasFullQueue(connection) {
  const { inFlight, bytesWaiting, messagesReceived } = connection.stats();
  return inFlight === 0 && bytesWaiting === 0 && messagesReceived >= 256;
}

/** The code of the error that is thrown, if one is. */
export function codeOf(work) {
  try {
    work();
  } catch (error) {
    assert.ok(error instanceof Error);
    assert.notEqual(error.message, "");
    return error.code;
  }
  return undefined;
}

/** Checks the code and the words of an error of the package. */
export const fails = (code, expected) => (error) => {
  assert.ok(error instanceof RakwireError, String(error));
  assert.equal(error.code, code);
  assert.match(error.message, expected);
  return true;
};
