// Connections with their protocol in a Web Worker, in Chromium, through a real relay, with real servers.

import assert from "node:assert/strict";
import { test } from "node:test";

import { openWith } from "./package-page.mjs";
import { PROTOCOLS } from "./protocols.mjs";
import { startEcho } from "./support.mjs";

for (const protocol of PROTOCOLS) {
  test(`${protocol.name}: a worker delivers every message once in both directions while the page is busy`, async (t) => {
    const echo = await startEcho(t, ...protocol.echo);
    const { page, url } = await openWith(t, { game: echo.address });
    const result = await page.evaluate(async ([relay, options]) => {
      const [{ connect }, { worker }] = await Promise.all([import("/dist/index.js"), import("/dist/worker.js")]);
      const connection = await connect(relay, { target: "game", worker, timeoutMs: 60_000, ...options });
      // The maximum length is known before the worker sends its first statistics.
      const longest = connection.maxMessageLength;
      const count = 1_200;
      const received = [];
      let refused = 0;
      const done = (async () => {
        for await (const { bytes } of connection) {
          received.push((bytes[1] << 8) | bytes[2]);
          if (received.length === count) {
            return;
          }
        }
      })();
      for (let number = 0; number < count; number++) {
        const message = new Uint8Array(1_000).fill(0xfe);
        message.set([number >> 8, number & 0xff], 1);
        try {
          connection.send(message, { reliability: "reliable" });
        } catch (error) {
          if (error.code !== "queue-full") {
            throw error;
          }
          refused += 1;
          await connection.ready();
          connection.send(message, { reliability: "reliable" });
        }
      }
      await done;
      const buffered = connection.bufferedAmount;
      const { code } = await connection.close();
      const { messagesSent, messagesReceived, messagesQueued } = connection.stats();
      return { longest, received, refused, buffered, code, messagesSent, messagesReceived, messagesQueued };
    }, [url, protocol.options]);
    assert.deepEqual(result.received.sort((a, b) => a - b), Array.from({ length: 1_200 }, (_, number) => number));
    assert.ok(result.longest > 10_000, `${result.longest}`);
    assert.ok(result.refused > 0, "1.2 MB at once must exceed the bytes that a page may have in flight to its worker");
    const { code, messagesSent, messagesReceived, messagesQueued } = result;
    assert.deepEqual([code, messagesSent, messagesReceived, messagesQueued], ["local", 1_200, 1_200, 0]);
  });

  test(`${protocol.name}: a worker reports the same errors as a page`, async (t) => {
    const echo = await startEcho(t, ...protocol.echo);
    const { page, relay, url } = await openWith(t, { game: echo.address });
    const open = page.evaluateHandle(async ([address, options]) => {
      const [{ connect }, { worker }] = await Promise.all([import("/dist/index.js"), import("/dist/worker.js")]);
      const codes = [];
      const note = (error) => codes.push(error.code);
      await connect(address, { target: "missing", worker, timeoutMs: 60_000, ...options }).catch(note);
      await connect(address, { target: "game", worker, memory: { blocks: 65_535, blockSize: 65_535 }, ...options }).catch(note);
      await connect(address, { target: "game", worker, webSocket: WebSocket, ...options }).catch(note);
      const patient = { resume: false, timeoutMs: 60_000 };
      const connection = await connect(address, { target: "game", worker, memory: { blocks: 64 }, ...patient, ...options });
      for (const bytes of [new Uint8Array(0), new Uint8Array(20_000).fill(0xfe), "text"]) {
        try {
          connection.send(bytes);
          codes.push("sent");
        } catch (error) {
          note(error);
        }
      }
      return { codes, connection };
    }, [url, protocol.options]);
    const handle = await open;
    const codes = await handle.evaluate(({ codes: found }) => found);
    assert.deepEqual(codes, ["relay-closed", "no-memory", "bad-option", "empty-message", "too-long", "bad-option"]);
    const ended = handle.evaluate(({ connection }) => connection.closed.then(({ code, relayCode }) => [code, relayCode]));
    relay.stop();
    assert.deepEqual(await ended, ["relay-closed", 1006]);
    assert.equal(await handle.evaluate(({ connection }) => connection.receive()), undefined);
  });
}

/** Runs before the script of a worker: counts the worker's messages to the page in shared memory. */
function countTold() {
  let counts;
  const post = self.postMessage.bind(self);
  self.addEventListener("message", ({ data }) => {
    if (data.type === "counts") {
      counts = new Int32Array(data.memory);
      post({ session: 0, type: "counting" });
    }
  });
  self.postMessage = (message, transfer) => {
    if (message.type === "messages" && counts !== undefined) {
      Atomics.add(counts, 0, message.messages.length);
    }
    post(message, transfer);
  };
}

/** The headers without which a page cannot share memory with its workers. */
const ISOLATED = { "cross-origin-opener-policy": "same-origin", "cross-origin-embedder-policy": "require-corp" };

for (const protocol of PROTOCOLS) {
  test(`${protocol.name}: a worker sends, receives and acknowledges while its page is blocked`, async (t) => {
    const echo = await startEcho(t, ...protocol.echo);
    const { page, url } = await openWith(t, { game: echo.address }, ISOLATED);
    const result = await page.evaluate(async ([relay, options, source]) => {
      const [{ connect }, { createWorker }] = await Promise.all([import("/dist/index.js"), import("/dist/worker.js")]);
      const text = await (await fetch("/pkg/worker.js")).text();
      let thread;
      const start = () => (thread = new Worker(URL.createObjectURL(new Blob([`(${source})();\n${text}`], { type: "text/javascript" }))));
      const connection = await connect(relay, { target: "game", worker: createWorker(start), timeoutMs: 60_000, ...options });
      const counts = new Int32Array(new SharedArrayBuffer(4));
      const counting = new Promise((resolve) => thread.addEventListener("message", ({ data }) => data.type === "counting" && resolve()));
      thread.postMessage({ type: "counts", memory: counts.buffer });
      await counting;
      // More messages than one initial congestion window holds, and than the page can receive.
      const count = 200;
      let received = 0;
      connection.onMessage = () => (received += 1);
      for (let number = 0; number < count; number++) {
        connection.send(new Uint8Array(1_000).fill(0xfe), { reliability: "reliable" });
      }
      // Waits a microtask, in which the messages are posted to the worker.
      await undefined;
      for (const end = performance.now() + 50_000; Atomics.load(counts, 0) < count && performance.now() < end; );
      const blocked = { posted: Atomics.load(counts, 0), received };
      while (received < count) {
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
      await connection.close();
      return { ...blocked, count };
    }, [url, protocol.options, countTold.toString()]);
    assert.deepEqual(result, { posted: 200, received: 0, count: 200 });
  });
}

test("receipts, the GUID, the addresses and the statistics of a server come from the worker", async (t) => {
  const echo = await startEcho(t);
  const { page, url } = await openWith(t, { game: echo.address });
  const result = await page.evaluate(async (address) => {
    const [{ connect }, { createWorker }] = await Promise.all([import("/dist/raknet.js"), import("/dist/worker.js")]);
    const connection = await connect(address, { target: "game", worker: createWorker(), timeoutMs: 60_000 });
    const outcome = await connection.sendWithReceipt(Uint8Array.of(0xfe, 1));
    const refusals = [];
    await connection.sendWithReceipt(Uint8Array.of(0xfe), { reliability: "reliable-sequenced" }).catch(({ code }) => refusals.push(code));
    await connection.sendWithReceipt(Uint8Array.of(0)).catch(({ code }) => refusals.push(code));
    let trips = 0;
    for await (const { roundTripMs } of connection.statistics({ intervalMs: 50 })) {
      trips = roundTripMs;
      if (trips > 0) {
        break;
      }
    }
    const { serverGuid } = connection;
    const addresses = connection.internalAddresses();
    await connection.close();
    return { outcome, refusals, trips, guid: typeof serverGuid, addresses, after: [typeof connection.serverGuid, connection.internalAddresses()] };
  }, url);
  assert.equal(result.outcome, "acknowledged");
  assert.deepEqual(result.refusals, ["bad-option", "reserved-id"]);
  assert.ok(result.trips > 0);
  assert.equal(result.guid, "bigint");
  assert.match(result.addresses[0], /^127\.0\.0\.1:\d+$/);
  assert.deepEqual(result.after, ["undefined", []]);
});

test("different entries connect through the same worker", async (t) => {
  const [raknet, game] = [await startEcho(t), await startEcho(t, "--protocol", "game")];
  const { page, url } = await openWith(t, { raknet: raknet.address, game: game.address });
  const answers = await page.evaluate(async (address) => {
    const { worker } = await import("/dist/worker.js");
    const play = async (entry, target) => {
      const { connect } = await import(`/dist/${entry}.js`);
      const connection = await connect(address, { target, worker, timeoutMs: 60_000 });
      connection.send(Uint8Array.of(0xfe, 7));
      const { bytes } = await connection.receive();
      await connection.close();
      return bytes[1];
    };
    return [await play("game-protocol", "game"), await play("raknet", "raknet"), await play("game-protocol", "game")];
  }, url);
  assert.deepEqual(answers, [7, 7, 7]);
});

test("a policy that forbids blob: workers causes worker-unavailable, and the script file works", async (t) => {
  const echo = await startEcho(t);
  const policy = "worker-src 'self'; script-src 'self' 'unsafe-eval'";
  const { page, url } = await openWith(t, { game: echo.address }, { "content-security-policy": policy });
  const codes = await page.evaluate(async (address) => {
    const [{ connect }, { createWorker, worker }] = await Promise.all([import("/dist/index.js"), import("/dist/worker.js")]);
    const code = await connect(address, { target: "game", worker }).catch((error) => error.code);
    const connection = await connect(address, { target: "game", worker: createWorker(() => new Worker("/pkg/worker.js")), timeoutMs: 60_000 });
    return [code, (await connection.close()).code];
  }, url);
  assert.deepEqual(codes, ["worker-unavailable", "local"]);
});

test("a policy that forbids WebAssembly causes wasm-unavailable", async (t) => {
  const { page, url } = await openWith(t, { game: "127.0.0.1:9" }, { "content-security-policy": "script-src 'self'" });
  const open = (entry) => page.evaluate(async ([name, address]) => {
    const { connect } = await import(`/dist/${name}.js`);
    return connect(address, { target: "game", ...(name === "slim" && { wasm: "/pkg/missing.wasm" }) }).catch(({ code, name: kind }) => `${kind} ${code}`);
  }, [entry, url]);
  assert.equal(await open("index"), "RakwireError wasm-unavailable");
  assert.equal(await open("slim"), "RakwireError wasm-unavailable");
});

test("the package works in a page's own module worker", async (t) => {
  const echo = await startEcho(t);
  const { page, url } = await openWith(t, { game: echo.address });
  const answer = await page.evaluate(async (address) => {
    const source = `
      import { connect } from "${location.origin}/dist/raknet.js";
      const connection = await connect(${JSON.stringify(address)}, { target: "game", timeoutMs: 60_000 });
      connection.send(Uint8Array.of(0xfe, 7));
      const { bytes } = await connection.receive();
      await connection.close();
      postMessage(bytes[1]);`;
    const own = new Worker(URL.createObjectURL(new Blob([source], { type: "text/javascript" })), { type: "module" });
    return new Promise((resolve) => own.addEventListener("message", ({ data }) => resolve(data)));
  }, url);
  assert.equal(answer, 7);
});
