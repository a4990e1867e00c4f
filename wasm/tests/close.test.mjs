// The time to close a connection, in memory with a fake clock, and over real sockets. The latter run without timers,
// because a close must complete when its acknowledgement arrives, not at a timeout.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { connect } from "rakwire";
import { listen } from "rakwire/server";

import { stoppableTimers } from "./stop-timers.mjs";
import { startLogged, WAYS } from "./leave.mjs";
import { openWith } from "./package-page.mjs";
import { connectTo, echoFixture, PROTOCOLS } from "./protocols.mjs";
import { echoOf, LIMIT_MS, numbered } from "./support.mjs";

/** The duration of a round trip in milliseconds of the fake clock. */
const ONE_ROUND_TRIP = 2;

test("either side closes a connection within one round trip", async () => {
  const script = fileURLToPath(new URL("close-in-memory.mjs", import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [script]);
  for (const [side, [code, ms]] of Object.entries(JSON.parse(stdout))) {
    assert.equal(code, "local");
    assert.ok(ms <= ONE_ROUND_TRIP, `${side}: closing took ${ms} ms, but a round trip takes ${ONE_ROUND_TRIP} ms`);
  }
});

for (const protocol of PROTOCOLS) {
  test(`${protocol.name}: a connection over a WebSocket closes without waiting for a timer`, async (t) => {
    const { relay } = await echoFixture(t, protocol);
    const timers = stoppableTimers();
    t.after(timers.restore);
    const connection = await connectTo(relay, protocol);
    await echoOf(connection, numbered(1));
    timers.stop();
    assert.equal((await timers.outcome(connection.close())).code, "local");
  });
}

test("either side of a connection to a server in Node closes the connection without waiting for a timer", async (t) => {
  const timers = stoppableTimers();
  t.after(timers.restore);
  const server = await listen({ host: "127.0.0.1" });
  t.after(() => server.close());
  const open = async () => {
    const [client, accepted] = await Promise.all([connect(`udp://127.0.0.1:${server.address.port}`, { timeoutMs: LIMIT_MS }), server.accept()]);
    await accepted.sendWithReceipt(numbered(1), { reliability: "reliable" });
    await client.sendWithReceipt(numbered(2), { reliability: "reliable" });
    return { client, accepted };
  };
  for (const side of ["client", "accepted"]) {
    const { [side]: closing } = await open();
    timers.stop();
    assert.equal((await timers.outcome(closing.close())).code, "local", side);
    timers.go();
  }
});

for (const { transport } of WAYS.filter(({ inWorker }) => !inWorker)) {
  test(`a connection of a page closes without waiting for a timer: ${transport}`, async (t) => {
    const { echo, url } = await startLogged(t);
    const { page } = await openWith(t, { game: echo.address });
    await page.evaluate(`globalThis.timers = (${stoppableTimers})()`);
    const close = async ([url, transport]) => {
      const { connect } = await import("/dist/index.js");
      const connection = await connect(url, { target: "game", transport, timeoutMs: 60_000 });
      connection.send(Uint8Array.of(0xfe), { reliability: "reliable" });
      await connection.receive();
      globalThis.timers.stop();
      return [connection.transport, (await globalThis.timers.outcome(connection.close())).code];
    };
    assert.deepEqual(await page.evaluate(close, [url, transport]), [transport, "local"]);
  });
}
