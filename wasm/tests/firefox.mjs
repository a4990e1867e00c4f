// Headless Firefox for tests, controlled by WebDriver BiDi, which the distribution's Firefox supports without a driver.

import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { networkInterfaces, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { WebSocket } from "ws";

/**
 * An address of this machine that is not loopback, because Firefox does not use data channels over the loopback
 * interface.
 */
export const OWN_ADDRESS = Object.values(networkInterfaces()).flat().find(({ family, internal }) => family === "IPv4" && !internal)?.address;
export const NO_ADDRESS = OWN_ADDRESS === undefined ? "this machine has only loopback addresses" : false;

const START_MS = 90_000;
/** The time limit for an answer. A page may wait for several events in sequence. */
const ANSWER_MS = 180_000;

/** Opens Firefox with an empty profile, except for these preferences and a trusted certificate authority. */
export async function openFirefox({ preferences = {}, authority } = {}) {
  const profile = mkdtempSync(join(tmpdir(), "rakwire-firefox-"));
  const lines = Object.entries(preferences).map((entry) => `user_pref(${entry.map((part) => JSON.stringify(part)).join(", ")});\n`);
  writeFileSync(join(profile, "user.js"), lines.join(""));
  if (authority !== undefined) {
    const add = ["-A", "-n", "test", "-t", "C,,", "-i", authority];
    execFileSync("certutil", ["-d", `sql:${profile}`, ...add], { stdio: "pipe" });
  }
  const program = process.env.FIREFOX ?? "/usr/bin/firefox-esr";
  const args = ["--headless", "--no-remote", "--profile", profile, "--remote-debugging-port", "0"];
  const child = spawn(program, args, { stdio: ["ignore", "ignore", "pipe"], env: { ...process.env, MOZ_REMOTE_ALLOW_SYSTEM_ACCESS: "1" } });
  const exited = new Promise((resolve) => child.once("exit", resolve));
  const address = await new Promise((resolve, reject) => {
    let printed = "";
    const timer = setTimeout(() => reject(new Error(`Firefox does not start: ${printed}`)), START_MS);
    child.stderr.on("data", (chunk) => {
      printed += chunk;
      const [, found] = /WebDriver BiDi listening on (ws:\S+)/.exec(printed) ?? [];
      if (found !== undefined) {
        clearTimeout(timer);
        resolve(found);
      }
    });
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`Firefox ended (${code}): ${printed}`)));
  });
  const bidi = await connectBidi(`${address}/session`);
  await bidi.ask("session.new", { capabilities: {} });
  const { contexts } = await bidi.ask("browsingContext.getTree", {});
  const context = contexts[0].context;
  return {
    /** Opens a page, and returns its title once it matches. */
    async titleOf(url, pattern) {
      await bidi.ask("browsingContext.navigate", { context, url, wait: "complete" });
      const end = Date.now() + ANSWER_MS;
      let title = "";
      while (Date.now() < end && !pattern.test(title)) {
        const script = { expression: "document.title", target: { context }, awaitPromise: false };
        ({ result: { value: title } } = await bidi.ask("script.evaluate", script));
        await sleep(100);
      }
      return title;
    },
    /** Opens a page, and returns the value of an expression, or of its promise, as text. */
    async textOf(url, expression) {
      await bidi.ask("browsingContext.navigate", { context, url, wait: "complete" });
      const { result, exceptionDetails } = await bidi.ask("script.evaluate", { expression, target: { context }, awaitPromise: true });
      if (exceptionDetails !== undefined) {
        throw new Error(exceptionDetails.text);
      }
      return result.value;
    },
    /** Opens a new tab. */
    async openTab(url) {
      const { context } = await bidi.ask("browsingContext.create", { type: "tab" });
      const go = (to) => bidi.ask("browsingContext.navigate", { context, url: to, wait: "complete" });
      await go(url);
      return {
        evaluate: async (expression) => {
          const script = { expression, target: { context }, awaitPromise: true };
          const { result, exceptionDetails } = await bidi.ask("script.evaluate", script);
          if (exceptionDetails !== undefined) {
            throw new Error(exceptionDetails.text);
          }
          return result.value;
        },
        close: () => bidi.ask("browsingContext.close", { context }),
        reload: () => bidi.ask("browsingContext.reload", { context, wait: "complete" }),
        leave: () => go("about:blank"),
        comeBack: () => bidi.ask("browsingContext.traverseHistory", { context, delta: -1 }),
      };
    },
    async close() {
      bidi.close();
      child.kill();
      await exited;
      rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

async function connectBidi(address) {
  const socket = new WebSocket(address);
  await new Promise((resolve, reject) => {
    socket.once("open", resolve);
    socket.once("error", reject);
  });
  const waiting = new Map();
  socket.on("message", (text) => {
    const { id, type, result, error, message } = JSON.parse(text);
    const wait = waiting.get(id);
    waiting.delete(id);
    if (type === "error") {
      wait?.reject(new Error(`${error}: ${message}`));
    } else {
      wait?.resolve(result);
    }
  });
  let last = 0;
  return {
    ask: (method, params) =>
      new Promise((resolve, reject) => {
        const id = ++last;
        waiting.set(id, { resolve, reject });
        socket.send(JSON.stringify({ id, method, params }));
      }),
    close: () => socket.close(),
  };
}
