// WebKit for tests: the distribution's WebKitGTK, controlled by WebDriver, on a virtual display.

import { spawn } from "node:child_process";
import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

import { openDisplay } from "./display.mjs";

const START_MS = 90_000;
/** The time limit for an answer. A page may wait for several events in sequence. */
const ANSWER_MS = 180_000;

const DRIVER = "/usr/bin/WebKitWebDriver";

/** Returns a free port. */
async function freePort() {
  const probe = createServer();
  await new Promise((resolve) => probe.listen(0, "127.0.0.1", resolve));
  const { port } = probe.address();
  await new Promise((resolve) => probe.close(resolve));
  return port;
}

/** Opens WebKit with an empty profile. */
export async function openWebKit() {
  const display = await openDisplay();
  const port = await freePort();
  // WebKit's sandbox needs kernel features that containers lack.
  const env = { ...process.env, DISPLAY: display.name, WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS: "1", LIBGL_ALWAYS_SOFTWARE: "1", GDK_BACKEND: "x11" };
  const driver = spawn(DRIVER, [`--port=${port}`], { stdio: "ignore", env });
  let failure;
  driver.once("error", (error) => (failure = error));
  const ask = async (method, path, body) => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, { method, ...(body && { body: JSON.stringify(body) }), signal: AbortSignal.timeout(ANSWER_MS) });
    const { value } = await answer.json();
    if (!answer.ok) {
      throw new Error(`WebKit: ${value.error}: ${value.message}`);
    }
    return value;
  };
  for (const end = Date.now() + START_MS; ; await sleep(100)) {
    const isReady = await ask("GET", "/status").then(() => true, () => false);
    if (isReady) {
      break;
    }
    if (failure !== undefined || Date.now() > end) {
      throw new Error("WebKitWebDriver did not start", { cause: failure });
    }
  }
  const { sessionId, capabilities } = await ask("POST", "/session", { capabilities: { alwaysMatch: {} } });
  return {
    version: capabilities.browserVersion,
    /** Opens a page, and returns its title once it matches. */
    async titleOf(url, pattern) {
      await ask("POST", `/session/${sessionId}/url`, { url });
      for (const end = Date.now() + ANSWER_MS; ; await sleep(100)) {
        const title = await ask("GET", `/session/${sessionId}/title`);
        if (pattern.test(title)) {
          return title;
        }
        if (Date.now() > end) {
          throw new Error(`the page is still ${JSON.stringify(title)}`);
        }
      }
    },
    async close() {
      await ask("DELETE", `/session/${sessionId}`).catch(() => undefined);
      driver.kill();
      display.close();
    },
  };
}
