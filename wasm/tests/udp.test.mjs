// The package as a native client in Node: UDP directly to real servers, with both protocols.

import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import dns from "node:dns";
import { syncBuiltinESMExports } from "node:module";
import { test } from "node:test";

import { connect, ping } from "rakwire";
import { connect as connectGame } from "rakwire/game-protocol";
import { connect as connectRakNet } from "rakwire/raknet";
import { connect as connectSlim, init } from "rakwire/slim";

import { readUdpUrl } from "../dist/node/platform.js";
import { PROTOCOLS } from "./protocols.mjs";
import { echoOf, fails, LIMIT_MS, next, pattern, startCpp, startEcho, until } from "./support.mjs";
import { startUdpWay } from "./way.mjs";

for (const protocol of PROTOCOLS) {
  test(`${protocol.name}: messages are echoed over UDP without a relay`, async (t) => {
    const echo = await startEcho(t, ...protocol.echo);
    const connection = await connect(`udp://${echo.address}`, protocol.options);
    for (const length of [1, 20, 100_000]) {
      connection.send(pattern(length));
      assert.ok(connection.bufferedAmount >= length, `${connection.bufferedAmount} of ${length} bytes`);
      assert.deepEqual((await next(connection)).bytes, pattern(length));
    }
    await until(() => connection.bufferedAmount === 0, "all data is sent");
    assert.equal((await connection.close()).code, "local");
    assert.equal(connection.bufferedAmount, 0);
  });

  test(`${protocol.name}: duplicated and late datagrams do not stay counted as lost`, async (t) => {
    const echo = await startEcho(t, ...protocol.echo);
    const way = await startUdpWay(t, Number(echo.address.split(":")[1]));
    const connection = await connect(`udp://127.0.0.1:${way.port}`, { ...protocol.options, silenceTimeoutMs: LIMIT_MS });
    const stats = () => connection.stats();
    const isAllThere = () => stats().datagramsLost === 0 && stats().inFlight === 0;
    way.isDoubled = true;
    for (let sent = 0; sent < 20; sent++) {
      await echoOf(connection, pattern(100));
    }
    await until(isAllThere, "no datagram counts as lost after duplication");
    way.isDoubled = false;
    const late = stats().datagramsLate;
    way.delaysAbove = 400;
    connection.onMessage = () => undefined;
    connection.send(pattern(500), { reliability: "reliable" });
    const isMissed = () => {
      connection.send(pattern(100), { reliability: "reliable" });
      return stats().datagramsLost > 0;
    };
    await until(isMissed, "the delayed datagram counts as lost");
    way.release();
    await until(() => isAllThere() && stats().datagramsLate > late, "the delayed datagram counts as late instead of lost");
    assert.equal((await connection.close()).code, "local");
  });

  test(`${protocol.name}: a connection to a silent server times out after the configured time, and invalid times are refused`, async (t) => {
    const echo = await startEcho(t, ...protocol.echo);
    const open = (options) => connect(`udp://${echo.address}`, { ...protocol.options, ...options });
    const patient = await open({ silenceTimeoutMs: LIMIT_MS });
    const impatient = await open({ silenceTimeoutMs: 1_000 });
    echo.stop("SIGSTOP");
    [patient, impatient].forEach((connection) => connection.send(pattern(1)));
    const first = await Promise.race([patient.closed.then(() => "patient"), impatient.closed.then(({ code }) => code)]);
    assert.equal(first, "lost");
    echo.stop("SIGCONT");
    assert.deepEqual((await next(patient)).bytes, pattern(1));
    await patient.close();
    for (const silenceTimeoutMs of [0, 0.5, 2 ** 31]) {
      await assert.rejects(open({ silenceTimeoutMs }), fails("bad-option", /silenceTimeoutMs/));
    }
  });

  test(`${protocol.name}: a port without a server is reported as server-unreachable, and a server that stops closes its connections`, async (t) => {
    const gone = createSocket("udp4");
    await new Promise((resolve) => gone.bind(0, "127.0.0.1", resolve));
    const { port } = gone.address();
    await new Promise((resolve) => gone.close(resolve));
    const attempt = connect(`udp://127.0.0.1:${port}`, { ...protocol.options, timeoutMs: LIMIT_MS });
    await assert.rejects(attempt, fails("server-unreachable", /127\.0\.0\.1:\d+ cannot be reached/));
    const closing = await startEcho(t, ...protocol.echo);
    const connection = await connect(`udp://${closing.address}`, protocol.options);
    // A client of the Game Protocol is connected before the server has received the last datagram of the handshake.
    connection.send(pattern(1));
    await next(connection);
    closing.stop("SIGTERM");
    assert.equal((await connection.whenClosed({ signal: AbortSignal.timeout(LIMIT_MS) })).code, "remote");
  });
}

test("an interface name follows the address, with % or escaped as in URLs, and an absent interface is an error", async (t) => {
  for (const separator of ["%", "%25"]) {
    const zoned = new URL(readUdpUrl(`udp://[fe80::1${separator}eth0.7]:19132`));
    assert.deepEqual([zoned.host, zoned.searchParams.get("interface")], ["[fe80::1]:19132", "eth0.7"]);
  }
  for (const url of ["udp://[::1]:19132", "udp://a%25b:1", "ws://[fe80::1%eth0]:1/ws"]) {
    assert.equal(readUdpUrl(url), url);
  }
  const echo = await startEcho(t, "--listen", "[::1]:0");
  const connection = await connect(`udp://[::1%lo]:${echo.address.split(":").at(-1)}`, { timeoutMs: LIMIT_MS });
  assert.equal((await connection.close()).code, "local");
  await assert.rejects(connect("udp://[fe80::1%absent]:19132"), fails("server-unreachable", /\[fe80::1%absent\]:19132/));
  await assert.rejects(ping("udp://[fe80::1%absent]:19132"), fails("server-unreachable", /%absent/));
});

test("a server name is resolved, and an unknown name is an error", async (t) => {
  const echo = await startEcho(t);
  const [, port] = echo.address.split(":");
  const connection = await connect(`udp://localhost:${port}`);
  assert.equal((await connection.close()).code, "local");
  await assert.rejects(connect("udp://nowhere.invalid:19132"), fails("server-unreachable", /nowhere\.invalid:19132/));
});

test("a server on ::1 is reached by a name that resolves to 127.0.0.1 and ::1", async (t) => {
  const echo = await startEcho(t, "--listen", "[::1]:0");
  mockLookup(t, "both.test", [{ address: "127.0.0.1", family: 4 }, { address: "::1", family: 6 }]);
  const connection = await connect(`udp://both.test:${echo.address.split(":").at(-1)}`, { timeoutMs: LIMIT_MS });
  connection.send(pattern(9));
  assert.deepEqual((await next(connection)).bytes, pattern(9));
  assert.equal((await connection.close()).code, "local");
});

/** Resolves a name to these addresses until the end of the test. */
function mockLookup(t, wanted, addresses) {
  const { lookup } = dns;
  t.mock.method(dns, "lookup", (name, options, done) => (name === wanted ? done(null, addresses) : lookup(name, options, done)));
  syncBuiltinESMExports();
  t.after(() => {
    t.mock.restoreAll();
    syncBuiltinESMExports();
  });
}

test("a name with only IPv6 addresses is reached over IPv6", async (t) => {
  const echo = await startEcho(t, "--listen", "[::1]:0");
  mockLookup(t, "six.test", [{ address: "::1", family: 6 }]);
  const connection = await connect(`udp://six.test:${echo.address.split(":").at(-1)}`);
  connection.send(pattern(9));
  assert.deepEqual((await next(connection)).bytes, pattern(9));
  assert.equal((await connection.close()).code, "local");
});

test("entries for one protocol connect over UDP and refuse the other protocol", async (t) => {
  const [raknet, game] = [await startEcho(t), await startEcho(t, "--protocol", "game")];
  for (const [open, { address }, wrong] of [[connectRakNet, raknet, "game"], [connectGame, game, "raknet"]]) {
    const connection = await open(`udp://${address}`);
    connection.send(pattern(9));
    assert.deepEqual((await next(connection)).bytes, pattern(9));
    await connection.close();
    await assert.rejects(open(`udp://${address}`, { protocol: wrong }), fails("bad-option", /only the protocol/));
  }
});

test("the slim entry requires a WebAssembly module, and accepts a module for only one protocol", async (t) => {
  const echo = await startEcho(t, "--protocol", "game");
  const open = () => connectSlim(`udp://${echo.address}`, { protocol: "game" });
  await assert.rejects(open(), fails("wasm-unavailable", /to init, or as the option wasm/));
  await assert.rejects(init(new Uint8Array(8)), fails("wasm-unavailable", /./));
  await init(new URL(import.meta.resolve("rakwire/game-protocol.wasm")));
  const connection = await open();
  assert.equal((await connection.close()).code, "local");
  await assert.rejects(connectSlim(`udp://${echo.address}`), fails("bad-option", /has no protocol raknet/));
});

test("a C++ server echoes over UDP and answers a ping", async (t) => {
  const cpp = await startCpp(t);
  const { data } = await ping(`udp://${cpp.address}`, { target: "cpp" });
  assert.notEqual(data.length, 0);
  const connection = await connect(`udp://${cpp.address}`);
  connection.send(pattern(50_000));
  assert.ok(Buffer.from((await next(connection)).bytes).equals(pattern(50_000)));
  assert.equal((await connection.close()).code, "local");
});

test("RakNet does not exceed its sending limit, and the Game Protocol has none", async (t) => {
  const echo = await startEcho(t);
  const connection = await connect(`udp://${echo.address}`, { outgoingLimit: 1_000_000 });
  const began = performance.now();
  assert.equal(await connection.sendWithReceipt(pattern(500_000)), "acknowledged");
  // Half a megabyte takes four seconds at this rate. The bound is lower, because an initial burst is allowed.
  const took = performance.now() - began;
  assert.ok(took > 3_000, `${took} ms`);
  await connection.close({ signal: AbortSignal.timeout(LIMIT_MS) });
  for (const outgoingLimit of [0, 1.5, 2 ** 53]) {
    await assert.rejects(connect(`udp://${echo.address}`, { outgoingLimit }), fails("bad-option", /outgoingLimit/));
  }
  const game = connect(`udp://${echo.address}`, { protocol: "game", outgoingLimit: 1 });
  await assert.rejects(game, fails("bad-option", /has no outgoingLimit/));
});

test("invalid addresses are refused", async () => {
  for (const url of ["udp://127.0.0.1", "udp://:7", "udp://"]) {
    await assert.rejects(connect(url), fails("bad-option", /udp:\/\/HOST:PORT|not a URL/), url);
  }
});
