// A server in Node: clients of this package, the command-line tool, and unknown senders.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createSocket } from "node:dgram";
import { promisify } from "node:util";
import { test } from "node:test";

import { connect } from "rakwire";
import { ping } from "rakwire/ping";
import { attach } from "rakwire/plugin";
import { listen } from "rakwire/server";

import { RakwireError } from "../dist/errors.js";
import { WaitingSenders } from "../dist/sending.js";
import { UdpServer } from "../dist/server/server.js";
import { ADDRESS, hostOf, portOf, textOf, writeAddress } from "../dist/server/socket.js";
import { echoOf, fails, LIMIT_MS, next, numbered, pattern, program, until } from "./support.mjs";

const OPTIONS = { timeoutMs: LIMIT_MS };

/** Starts a server that is closed at the end of the test. */
async function start(t, options) {
  const server = await listen({ host: "127.0.0.1", ...options });
  t.after(() => server.close());
  const { host, port } = server.address;
  return { server, url: `udp://${host.includes(":") ? `[${host}]` : host}:${port}` };
}

/** Echoes every message with the delivery with which it arrived. */
async function echo(server) {
  for await (const connection of server) {
    connection.onMessage = ({ bytes, reliability, channel }) => connection.send(bytes, { reliability, channel });
  }
}

test("messages are echoed in each reliability", async (t) => {
  const { server, url } = await start(t);
  void echo(server);
  const connection = await connect(url, OPTIONS);
  assert.equal(connection.serverGuid !== undefined, true);
  const reliabilities = ["reliable", "reliable-ordered", "reliable-sequenced", "unreliable", "unreliable-sequenced"];
  for (const [index, reliability] of reliabilities.entries()) {
    const message = pattern(1_000 + index);
    const { bytes, ...delivery } = await echoOf(connection, message, { reliability, channel: 3 });
    assert.deepEqual([bytes, delivery.reliability], [message, reliability]);
  }
  assert.deepEqual((await echoOf(connection, pattern(300_000))).bytes, pattern(300_000));
  assert.equal((await connection.close()).code, "local");
});

test("a server connection sends messages, resolves receipts and closes like a client connection", async (t) => {
  const { server, url } = await start(t);
  const [client, accepted] = await Promise.all([connect(url, OPTIONS), server.accept()]);
  assert.match(accepted.remoteAddress, /^127\.0\.0\.1:\d+$/);
  assert.deepEqual([typeof accepted.clientGuid, accepted.transport, accepted.serverGuid], ["bigint", "udp", undefined]);
  assert.deepEqual(server.connections(), [accepted]);
  assert.equal(await accepted.sendWithReceipt(numbered(1)), "acknowledged");
  assert.deepEqual((await next(client)).bytes, numbered(1));
  assert.throws(() => accepted.send(new Uint8Array(0)), fails("empty-message", /byte/));
  assert.throws(() => accepted.send(Uint8Array.of(1)), fails("reserved-id", /0x1B/));
  const { messagesSent, bytesSent, drops } = accepted.stats();
  assert.ok(messagesSent >= 1 && bytesSent > 0, `${messagesSent} messages, ${bytesSent} bytes`);
  assert.deepEqual(drops, {});
  assert.equal((await accepted.close()).code, "local");
  assert.equal((await client.closed).code, "remote");
  assert.throws(() => accepted.send(numbered(1)), fails("not-connected", /ended/));
  assert.deepEqual(server.connections(), []);
});

test("a broadcast reaches all connections but the excluded one, and returns the connections that refused the message", async (t) => {
  const { server, url } = await start(t, { maxConnections: 3 });
  const open = async () => ({ here: await connect(url, OPTIONS), there: await server.accept() });
  const [first, second, third] = [await open(), await open(), await open()];
  assert.deepEqual(server.broadcast(numbered(1), { reliability: "reliable-ordered", channel: 2 }), { sent: 3, refused: [] });
  for (const { here } of [first, second, third]) {
    const { bytes, channel } = await next(here);
    assert.deepEqual([bytes, channel], [numbered(1), 2]);
  }
  assert.deepEqual(server.broadcast(numbered(2), { except: second.there }), { sent: 2, refused: [] });
  assert.deepEqual(server.broadcast(numbered(3)), { sent: 3, refused: [] });
  assert.deepEqual((await next(second.here)).bytes, numbered(3), "the excluded connection must not receive message 2");
  assert.deepEqual((await next(first.here)).bytes, numbered(2));
  // Node reads no socket during this loop, so no acknowledgement frees the queue.
  assert.throws(() => {
    for (;;) first.there.send(pattern(60_000));
  }, fails("queue-full", /later/));
  const large = server.broadcast(pattern(60_000));
  assert.ok(large.refused.includes(first.there) && large.sent === 3 - large.refused.length, JSON.stringify(large.sent));
  assert.throws(() => server.broadcast(new Uint8Array(0)), fails("empty-message", /byte/));
  await third.here.close();
  await third.there.closed;
  assert.equal(server.broadcast(numbered(4), { except: first.there }).sent, 1);
});

test("a client gets the last message before the close event", async (t) => {
  const { server, url } = await start(t);
  const [client, accepted] = await Promise.all([connect(url, OPTIONS), server.accept()]);
  accepted.send(pattern(100_000));
  accepted.send(numbered(7));
  assert.equal((await accepted.close()).code, "local");
  assert.deepEqual([(await next(client)).bytes, (await next(client)).bytes], [pattern(100_000), numbered(7)]);
  assert.equal((await client.closed).code, "remote");
});

test("clients that leave or stop sending are disconnected on the server", async (t) => {
  const { server, url } = await start(t, { silenceTimeoutMs: 3_000 });
  const [client, accepted] = await Promise.all([connect(url, OPTIONS), server.accept()]);
  client.send(numbered(1));
  await client.close();
  assert.equal((await accepted.closed).code, "remote");
  assert.deepEqual((await next(accepted)).bytes, numbered(1), "messages received before the close must be delivered");
  // The path is cut without a disconnect.
  const way = createSocket("udp4");
  const far = createSocket("udp4");
  let client_;
  way.on("message", (datagram, { port }) => far.send(datagram, server.address.port, "127.0.0.1", () => (client_ = port)));
  far.on("message", (datagram) => way.send(datagram, client_, "127.0.0.1"));
  await new Promise((resolve) => way.bind(0, "127.0.0.1", resolve));
  const [cut, silent] = await Promise.all([connect(`udp://127.0.0.1:${way.address().port}`, OPTIONS), server.accept()]);
  way.close();
  far.close();
  silent.send(numbered(2));
  assert.equal((await silent.closed).code, "lost");
  await cut.close();
});

test("twenty simultaneous clients each get their own messages", async (t) => {
  const { server, url } = await start(t);
  void echo(server);
  const clients = await Promise.all(Array.from({ length: 20 }, () => connect(url, OPTIONS)));
  await until(() => server.stats().connections === 20, "all 20 clients are connected");
  await Promise.all(
    clients.map(async (client, number) => {
      for (let count = 0; count < 100; count++) client.send(numbered(number * 100 + count));
      for (let count = 0; count < 100; count++) assert.deepEqual((await next(client)).bytes, numbered(number * 100 + count));
      assert.equal((await client.close()).code, "local");
    }),
  );
});

test("an unread connection on the server blocks only its own client", async (t) => {
  const { server, url } = await start(t, { maxConnections: 2 });
  const [slow, slowOnServer] = await Promise.all([connect(url, OPTIONS), server.accept()]);
  const [quick, quickOnServer] = await Promise.all([connect(url, OPTIONS), server.accept()]);
  let sent = 0;
  assert.throws(() => {
    for (;;) {
      slow.send(pattern(1_000));
      sent += 1;
    }
  }, fails("queue-full", /later/));
  await until(() => slowOnServer.stats().messagesQueued === 256, "the receive queue of the server is full");
  for (let number = 0; number < 500; number++) {
    quick.send(numbered(number));
    assert.deepEqual((await next(quickOnServer)).bytes, numbered(number));
  }
  for (let received = 0; received < sent; received++) assert.equal((await next(slowOnServer)).bytes.length, 1_000);
  await Promise.all([slow.close(), quick.close()]);
});

test("a client with a wrong password is reported and leaves no connection", async (t) => {
  const refused = [];
  const onRefused = (client) => {
    refused.push(client);
    throw new Error("a handler that fails");
  };
  const { mock } = t.mock.method(console, "error", () => undefined);
  const { server, url } = await start(t, { maxConnections: 2, password: "friends", onRefused });
  for (const password of ["foes", ""]) {
    await assert.rejects(connect(url, { ...OPTIONS, password }), fails("invalid-password", /password/));
  }
  await until(() => refused.length === 2, "the server has reported both refused clients");
  for (const { address, clientGuid, reason, isValidated } of refused) {
    assert.match(address, /^127\.0\.0\.1:\d+$/);
    assert.deepEqual([typeof clientGuid, reason, typeof isValidated], ["bigint", "wrong-password", "boolean"]);
  }
  assert.notEqual(refused[0].clientGuid, refused[1].clientGuid);
  assert.deepEqual([server.stats().connections, server.connections()], [0, []]);
  // The slots of both refused clients are free, so further clients can connect.
  for (let count = 1; count <= 2; count++) {
    const [, accepted] = await Promise.all([connect(url, { ...OPTIONS, password: "friends" }), server.accept()]);
    assert.deepEqual([refused.some(({ address }) => address === accepted.remoteAddress), server.stats().connections], [false, count]);
  }
  assert.equal(mock.callCount(), 2, "each exception of onRefused must be reported");
  await server.close();
});

test("a full server and a wrong password cause different errors", async (t) => {
  const { server, url } = await start(t, { maxConnections: 1, password: "friends" });
  await assert.rejects(connect(url, { ...OPTIONS, password: "foes" }), fails("invalid-password", /password/));
  const client = await connect(url, { ...OPTIONS, password: "friends" });
  await assert.rejects(connect(url, { ...OPTIONS, password: "friends" }), fails("server-full", /full/));
  await client.close();
  await (await server.accept()).closed;
});

test("a ping is answered with the advertisement of the server", async (t) => {
  const { url } = await start(t, { advertisement: "two of eight" });
  const { data } = await ping(url, { timeoutMs: LIMIT_MS });
  assert.equal(new TextDecoder().decode(data), "two of eight");
});

test("datagrams of unknown senders are dropped and counted without an effect", async (t) => {
  const { server, url } = await start(t);
  void echo(server);
  const connection = await connect(url, OPTIONS);
  const other = createSocket("udp4");
  t.after(() => other.close());
  let state = 7;
  const random = () => (state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0) >>> 24;
  for (let count = 0; count < 500; count++) {
    const datagram = Uint8Array.from({ length: random() * 5 }, random);
    await new Promise((resolve) => other.send(datagram, server.address.port, "127.0.0.1", resolve));
  }
  connection.send(numbered(7));
  assert.deepEqual((await next(connection)).bytes, numbered(7));
  await until(() => Object.values(server.stats().drops).reduce((sum, times) => sum + times, 0) > 100, "the server has counted more than 100 drops");
  assert.equal((await connection.close()).code, "local");
});

/** Connects as soon as the slot of an earlier client is free. */
async function connectWhenFree(url) {
  for (;;) {
    try {
      return await connect(url, OPTIONS);
    } catch (error) {
      if (error.code !== "server-full") throw error;
    }
  }
}

test("of the closed connections that the application has not accepted, the newest are kept", async (t) => {
  const { server, url } = await start(t, { maxConnections: 1 });
  for (let count = 0; count < 3; count++) {
    const client = await connectWhenFree(url);
    client.send(numbered(count));
    await client.close();
    await until(() => server.stats().connections === 0, "the connection is closed at the server");
  }
  assert.equal(server.stats().connectionsEvicted, 2);
  assert.deepEqual((await next(await server.accept())).bytes, numbered(2));
});

test("closing a server notifies its clients and pending accept calls", async (t) => {
  const { server, url } = await start(t);
  const [client, accepted] = await Promise.all([connect(url, OPTIONS), server.accept()]);
  accepted.send(numbered(1));
  const waiting = server.accept();
  await server.close();
  assert.equal(await waiting, undefined);
  assert.deepEqual((await next(client)).bytes, numbered(1));
  assert.equal((await client.closed).code, "remote");
  assert.equal(await server.accept(), undefined);
  assert.deepEqual(server.stats().connections, 0);
  await server.closed;
  await server.close();
});

test("the wait for a connection is cancelled by its signal", async (t) => {
  const { server, url } = await start(t);
  await assert.rejects(server.accept({ signal: AbortSignal.abort(new Error("enough")) }), /enough/);
  const [client] = await Promise.all([connect(url, OPTIONS), server.accept()]);
  await client.close();
});

test("the server listens on IPv6", async (t) => {
  const { server, url } = await start(t, { host: "::1" });
  void echo(server);
  const connection = await connect(url, OPTIONS);
  connection.send(numbered(9));
  assert.deepEqual((await next(connection)).bytes, numbered(9));
  assert.match(server.connections()[0].remoteAddress, /^\[::1\]:\d+$/);
  await connection.close();
});

test("the command-line tool connects to a server", async (t) => {
  const { server } = await start(t);
  void echo(server);
  const path = program("RAKWIRE_BIN", "Build it with `cargo build --release -p rakwire-cli`.");
  const { stdout } = await promisify(execFile)(path, ["send", `127.0.0.1:${server.address.port}`, "hello"]);
  assert.match(stdout, /^echo "hello" in /);
});

test("invalid options and an occupied port cause different errors", async (t) => {
  const { server } = await start(t);
  const taken = { host: "127.0.0.1", port: server.address.port };
  await assert.rejects(listen(taken), fails("address-unavailable", /127\.0\.0\.1/));
  for (const [options, text] of [
    [{ host: "localhost" }, /host/],
    [{ port: 65_536 }, /port/],
    [{ maxConnections: 0 }, /maxConnections/],
    [{ maxPerAddress: 0 }, /maxPerAddress/],
    [{ maxPerNetwork: 10_001 }, /maxPerNetwork/],
    [{ password: "x".repeat(256) }, /password/],
    [{ onRefused: "log" }, /onRefused/],
    [{ advertisement: "x".repeat(400) }, /advertisement/],
    [{ silenceTimeoutMs: 0 }, /silenceTimeoutMs/],
    [{ memory: { blocks: 1 } }, /blocks/],
  ]) {
    await assert.rejects(listen(options), fails("bad-option", text));
  }
  await assert.rejects(listen({ memory: { blocks: 65_535, blockSize: 65_535 } }), fails("no-memory", /memory/));
});

test("addresses of the system are converted to bytes and back", () => {
  for (const [address, host, text] of [
    ["192.0.2.7", "192.0.2.7", "192.0.2.7:50000"],
    ["::ffff:192.0.2.7", "192.0.2.7", "192.0.2.7:50000"],
    ["2001:db8::7", "2001:db8:0:0:0:0:0:7", "[2001:db8::7]:50000"],
    ["::", "0:0:0:0:0:0:0:0", "[::]:50000"],
    ["fe80::1:2%eth0", "fe80:0:0:0:0:0:1:2%eth0", "[fe80::1:2%eth0]:50000"],
    ["fe80::1:2%to_home", "fe80:0:0:0:0:0:1:2%to_home", "[fe80::1:2%to_home]:50000"],
    ["fe80::1:2%eth0", "fe80:0:0:0:0:0:1:2%eth0", "[fe80::1:2%eth0]:50000"],
    ["1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7:8", "[1:2:3:4:5:6:7:8]:50000"],
  ]) {
    const bytes = new Uint8Array(ADDRESS).fill(0xee);
    writeAddress(bytes, address, 50_000);
    assert.deepEqual([hostOf(bytes, false), portOf(bytes), textOf(bytes)], [host, 50_000, text]);
  }
  const mapped = new Uint8Array(ADDRESS);
  writeAddress(mapped, "192.0.2.7", 1);
  assert.equal(hostOf(mapped, true), "::ffff:192.0.2.7");
});

test("the unread messages of a client are limited even if a server has a plugin", async (t) => {
  const { server, url } = await start(t);
  const [client, accepted] = await Promise.all([connect(url, OPTIONS), server.accept()]);
  attach(accepted, { ids: [0x86], onMessage: () => undefined });
  const message = pattern(1_000);
  let sent = 0;
  const sending = (async () => {
    for (; sent < 3_000; sent++) {
      await client.ready({ length: message.length });
      client.send(message);
    }
  })();
  await until(() => accepted.stats().messagesQueued * 1_064 >= 1024 * 1024, "the receive queue of the server is full");
  await new Promise((resolve) => setTimeout(resolve, 200));
  assert.equal(accepted.stats().messagesQueued, Math.ceil((1024 * 1024) / 1_064));
  accepted.onMessage = () => undefined;
  await sending;
});

const settled = () => new Promise((resolve) => setImmediate(resolve));

/** Creates a server without UDP and WebAssembly. `happen(slot)` delivers the next of the slot's `events`. */
function playedServer(events) {
  const readable = [];
  const all = { handle: () => undefined, handleTimeout: () => undefined, pollTransmit: () => undefined, pollTimeout: () => Infinity, free: () => freed.push("server") };
  const [freed, calls] = [[], []];
  const peers = {
    all,
    pollReadable: () => readable.shift(),
    client: () => ({ remoteAddress: "192.0.2.7:1", clientGuid: 1n }),
    connection: (slot, onFree) => ({
      isOver: false,
      pollEvent: (callbacks) => events[slot].shift()?.(callbacks) ?? false,
      disconnect: () => calls.push(`disconnect ${slot}`),
      stats: () => (assert.ok(!freed.includes("server")), { drops: {} }),
      canSend: () => true,
      free() {
        freed.push(slot);
        onFree();
      },
    }),
  };
  let onDatagram;
  const socket = { name: "udp", hasRoom: true, address: {}, unsent: 0, listen: (callback) => (onDatagram = callback), send: () => undefined, close: () => undefined };
  const server = new UdpServer(peers, socket, 4);
  const happen = (...slots) => {
    readable.push(...slots);
    onDatagram(new Uint8Array(1));
  };
  return { server, freed, calls, happen };
}

test("an error of one connection closes only that connection, before or after it opens", async () => {
  const noMemory = () => {
    throw new RakwireError("no-memory", "there is no memory");
  };
  const opens = (callbacks) => callbacks.onConnected() ?? true;
  const { server, freed, happen } = playedServer([[noMemory], [opens, noMemory], [opens]]);
  happen(0, 1, 2);
  const [second, third] = [await server.accept(), await server.accept()];
  assert.deepEqual(freed, [0, 1]);
  assert.equal((await second.closed).code, "no-memory");
  assert.deepEqual(server.connections(), [third]);
});

test("closing a server also waits for a client that connects during the close", async () => {
  const opens = (callbacks) => callbacks.onConnected() ?? true;
  const ends = (callbacks) => callbacks.onEnded("local", "") ?? true;
  const events = [[opens], [opens]];
  const { server, freed, happen } = playedServer(events);
  happen(0);
  let isClosed = false;
  const closed = server.close().then(() => (isClosed = true));
  happen(1);
  await settled();
  events[0].push(ends);
  happen(0);
  await settled();
  assert.deepEqual([freed, isClosed], [[0], false]);
  events[1].push(ends);
  happen(1);
  await closed;
  assert.deepEqual(freed, [0, 1, "server"]);
  assert.equal(await server.accept(), undefined);
});

test("the last connection opened by a client is closed before the server is freed", async () => {
  const opens = (callbacks) => callbacks.onConnected() ?? true;
  const ends = (callbacks) => callbacks.onEnded("local", "") ?? true;
  const events = [[opens], [opens], [opens], [opens]];
  const { server, calls, freed, happen } = playedServer(events);
  happen(0);
  const closed = server.close();
  happen(1);
  await settled();
  events[0].push(ends);
  happen(0);
  await settled();
  // The server now closes the second connection, and waits for no other.
  happen(2);
  const [, third] = server.connections();
  const codes = [];
  third.addEventListener("close", ({ info }) => codes.push(info.code));
  await settled();
  events[1].push(ends);
  // The last connection opens in the same run.
  happen(1, 3);
  await closed;
  assert.deepEqual(freed, [0, 1, 2, 3, "server"]);
  assert.deepEqual([2, 3].filter((slot) => calls.includes(`disconnect ${slot}`)), [2, 3]);
  assert.equal((await third.closed).code, "local");
  assert.equal((await third.close()).code, "local");
  assert.deepEqual(codes, ["local"]);
  assert.throws(() => third.send(numbered(1)), fails("not-connected", /ended/));
  assert.deepEqual([third.stats().drops, server.connections()], [{}, []]);
});

test("a datagram of one client causes no work for the connections of other clients", async (t) => {
  const updated = new Map();
  const { update } = WaitingSenders.prototype;
  t.mock.method(WaitingSenders.prototype, "update", function () {
    updated.set(this, (updated.get(this) ?? 0) + 1);
    return update.call(this);
  });
  const { server, url } = await start(t);
  void echo(server);
  const clients = await Promise.all(Array.from({ length: 6 }, () => connect(url, OPTIONS)));
  await new Promise((resolve) => setTimeout(resolve, 200));
  updated.clear();
  for (let number = 0; number < 60; number++) {
    clients[0].send(numbered(number));
    await next(clients[0]);
  }
  const busy = [...updated.values()].filter((times) => times >= 50);
  assert.equal(busy.length, 2, `${[...updated.values()]}`);
});
