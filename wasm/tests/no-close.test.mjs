// WebSockets that report their closing differently from the standard, or not at all: those of Node 22, of Deno, and of
// Chromium if the policy of the page forbids the URL.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";

import { connect, discover, ping } from "rakwire";
import { isTransient } from "rakwire/reconnect";

import { LIMIT_MS } from "./support.mjs";

/** Returns a WebSocket class with instances that dispatch these events when they are created. */
const failing = (...events) =>
  class extends EventTarget {
    bufferedAmount = 0;
    constructor() {
      super();
      queueMicrotask(() => events.forEach((event) => this.dispatchEvent(event())));
    }
    send() {}
    close() {}
  };

const WEB_SOCKETS = {
  "an error alone": failing(() => new Event("error")),
  "an error and the code 0": failing(() => new Event("error"), () => Object.assign(new Event("close"), { code: 0, reason: "" })),
};

const URL = "ws://127.0.0.1:9/ws";

for (const [what, webSocket] of Object.entries(WEB_SOCKETS)) {
  test(`a relay is unreachable if the WebSocket has ${what}`, async () => {
    const options = { webSocket, timeoutMs: LIMIT_MS };
    const attempts = {
      connect: () => connect(URL, { target: "game", ...options }),
      ping: () => ping(URL, { target: "game", ...options }),
      discover: () => discover(URL, { targets: ["game", "other"], ...options }),
    };
    for (const [name, attempt] of Object.entries(attempts)) {
      const error = await attempt().then(() => undefined, (thrown) => thrown);
      assert.deepEqual([name, error?.code, error?.relayCode], [name, "relay-unreachable", 1006]);
      assert.ok(isTransient(error));
    }
  });
}

test("a process stays alive while it waits for a relay, even if nothing else keeps it alive", async () => {
  const script = `
    import { connect, ping } from "rakwire";
    class Never extends EventTarget { bufferedAmount = 0; send() {} close() {} }
    const options = { target: "game", webSocket: Never, timeoutMs: 200 };
    for (const ask of [connect, ping]) {
      console.log(await ask("ws://127.0.0.1:9/ws", options).catch(({ code }) => code));
    }`;
  const cwd = new globalThis.URL(".", import.meta.url).pathname;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", script], { cwd });
  assert.deepEqual(stdout.trim().split("\n"), ["timeout", "no-answer"]);
});
