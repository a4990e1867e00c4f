// Clients that ping a server for its version before the handshake, at servers that block an address after a request
// with a wrong version.

import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { test } from "node:test";
import { WebSocket } from "ws";

import { connect } from "rakwire";
import { createWorker } from "rakwire/worker";

import { writePing } from "../dist/raknet-wire.js";
import { fails, LIMIT_MS, next, pattern, startEcho, startRelay, until } from "./support.mjs";
import { startThread } from "./worker-thread.mjs";

/** The ids of pings in both scopes. A relay that knows the protocol sends both. */
const PINGS = [0x01, 0x02];
const REQUEST_1 = 0x05;
const PONG = 0x1c;
const INCOMPATIBLE = 0x19;
/** The offset of the version in the first request, after id and magic. */
const VERSION_AT = 17;
const MAGIC = Buffer.from(writePing("any", 0n, 0n)).subarray(9, 25);
const GUID = Buffer.from("0123456789abcdef", "hex");

const pong = (ping, advertisement) => Buffer.concat([Buffer.of(PONG), ping.subarray(1, 9), GUID, MAGIC, Buffer.from(advertisement)]);

/**
 * Starts a path to an echo server. The path blocks an address after a request with a version other than `version`. It
 * answers pings with the result of `answer(ping, count)`, unless that is `undefined`.
 */
async function startGuard(t, version, answer) {
  const echo = await startEcho(t);
  const port = Number(echo.address.split(":")[1]);
  const guard = { pings: 0, requested: [], blocked: new Set() };
  const near = createSocket("udp4");
  const far = new Map();
  near.on("message", (datagram, client) => {
    const name = `${client.address}:${client.port}`;
    if (guard.blocked.has(name)) return;
    if (PINGS.includes(datagram[0])) {
      const reply = answer(datagram, ++guard.pings);
      if (reply !== undefined) near.send(reply, client.port, client.address);
      return;
    }
    if (datagram[0] === REQUEST_1) {
      guard.requested.push(datagram[VERSION_AT]);
      if (datagram[VERSION_AT] !== version) {
        guard.blocked.add(name);
        near.send(Buffer.concat([Buffer.of(INCOMPATIBLE, version), MAGIC, GUID]), client.port, client.address);
        return;
      }
    }
    if (!far.has(name)) {
      const socket = createSocket("udp4");
      socket.on("message", (back) => near.send(back, client.port, client.address));
      far.set(name, socket);
    }
    far.get(name).send(datagram, port, "127.0.0.1");
  });
  await new Promise((resolve) => near.bind(0, "127.0.0.1", resolve));
  t.after(() => [near, ...far.values()].forEach((socket) => socket.close()));
  guard.address = `127.0.0.1:${near.address().port}`;
  return guard;
}

const bedrock = (ping) => pong(ping, "\0\x05MCPE;");

/** The routes of a client to a server. */
const ROUTES = {
  "a relay": async (t, guard) => {
    const relay = await startRelay(t, { game: guard.address });
    return [`ws://${relay.address}/ws`, { target: "game", webSocket: WebSocket }];
  },
  "a relay that knows the protocol": async (t, guard) => {
    const relay = await startRelay(t, { game: `${guard.address},kind=raknet` });
    return [`ws://${relay.address}/ws`, { target: "game", webSocket: WebSocket }];
  },
  "UDP": async (_, guard) => [`udp://${guard.address}`, {}],
  "a worker": async (t, guard) => {
    const started = startThread(t);
    return [`udp://${guard.address}`, { worker: createWorker(() => started) }];
  },
};

async function echoes(connection) {
  connection.send(pattern(5_000));
  assert.deepEqual((await next(connection)).bytes, pattern(5_000));
  await connection.close();
}

for (const [name, open] of Object.entries(ROUTES)) {
  test(`by ${name}: the first request of a client has the version of the server`, async (t) => {
    const guard = await startGuard(t, 11, bedrock);
    const [url, options] = await open(t, guard);
    await echoes(await connect(url, { ...options, timeoutMs: LIMIT_MS }));
    assert.deepEqual([...new Set(guard.requested)], [11]);
    assert.equal(guard.blocked.size, 0);
  });
}

test("a client with an explicit version sends no ping, and is blocked", async (t) => {
  const guard = await startGuard(t, 11, bedrock);
  const given = new AbortController();
  const attempt = connect(`udp://${guard.address}`, { protocolVersion: 6, signal: given.signal, timeoutMs: LIMIT_MS });
  attempt.catch(() => undefined);
  await until(() => guard.blocked.size > 0, "the server has blocked the client");
  given.abort();
  await assert.rejects(attempt);
  assert.deepEqual([guard.pings, guard.requested], [0, [6]]);
});

test("a client resends a lost ping for the version", async (t) => {
  const guard = await startGuard(t, 11, (ping, count) => (count > 1 ? bedrock(ping) : undefined));
  await echoes(await connect(`udp://${guard.address}`, { protocolVersion: "auto", timeoutMs: LIMIT_MS }));
  assert.deepEqual([...new Set(guard.requested)], [11]);
});

for (const [what, answer] of [["a pong that shows no version", (ping) => pong(ping, "a game")], ["no pong", () => undefined]]) {
  test(`a client requests version 6 if it gets ${what}`, async (t) => {
    const guard = await startGuard(t, 6, answer);
    await echoes(await connect(`udp://${guard.address}`, { protocolVersion: "auto", timeoutMs: LIMIT_MS }));
    assert.deepEqual([...new Set(guard.requested)], [6]);
  });
}

test("the timeout of an attempt includes the ping for the version", async (t) => {
  const guard = await startGuard(t, 11, () => undefined);
  guard.blocked.has = () => true;
  const timeoutMs = 2_000;
  await assert.rejects(connect(`udp://${guard.address}`, { protocolVersion: "auto", timeoutMs }), fails("timeout", /within 2000 ms/));
  await assert.rejects(connect(`udp://${guard.address}`, { protocolVersion: "ask" }), fails("bad-option", /protocolVersion/));
});

test("an attempt can be cancelled while it waits for the version of the server", async (t) => {
  const controller = new AbortController();
  const guard = await startGuard(t, 11, () => void controller.abort());
  const options = { protocolVersion: "auto", timeoutMs: LIMIT_MS, signal: controller.signal };
  await assert.rejects(connect(`udp://${guard.address}`, options), { name: "AbortError" });
  assert.deepEqual([guard.pings, guard.requested], [1, []]);
});
