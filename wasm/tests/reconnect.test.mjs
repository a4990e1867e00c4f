// Reconnecting after a loss: at a real relay that is killed or restarted, and with fake attempts.

import assert from "node:assert/strict";
import { setImmediate as settle } from "node:timers/promises";
import { test } from "node:test";
import { WebSocket } from "ws";

import { connect } from "rakwire";
import { connections, isTransient, RakwireError } from "rakwire/reconnect";
import { createWorker } from "rakwire/worker";

import { openFake } from "./fake-peer.mjs";
import { relayTokens } from "./keys.mjs";
import { PROTOCOLS, RAKNET } from "./protocols.mjs";
import { echoOf, fails, LIMIT_MS, pattern, startAgain, startEcho, startRelay } from "./support.mjs";
import { watchedSignal } from "./waits.mjs";
import { startThread } from "./worker-thread.mjs";

const USUAL = { target: "game", timeoutMs: LIMIT_MS };
/** Options for many short pauses, because a relay takes a while to start. */
const PATIENT = { maxAttempts: 1_000, minDelayMs: 20, maxDelayMs: 100 };

/**
 * The arguments of a relay that requires tokens, for its first start and its restart, and a new token for each
 * connection.
 */
function expiringTokens(t) {
  const { file, token } = relayTokens(t);
  const args = (leeway) => ["--token-key", file, "--token-leeway", leeway];
  // The restarted relay no longer accepts the token of the first connection, so the test need not wait for its expiry.
  return { first: args("5m"), again: args("0s"), options: (isFirst) => ({ token: token(isFirst ? -60 : 600) }) };
}

const NO_TOKENS = { first: [], again: [], options: () => ({}) };

/** Opens connections through a relay that the test can restart on the same address. */
async function startRestartable(t, { echo: args, options }, tokens) {
  const echo = await startEcho(t, ...args);
  const targets = { game: echo.address };
  const relay = await startRelay(t, targets, ...tokens.first);
  const { address } = relay;
  let isFirst = true;
  return {
    open: (signal) => connect(`ws://${address}/ws`, { ...USUAL, ...options, ...tokens.options(isFirst), webSocket: WebSocket, signal }),
    stop: (how) => {
      isFirst = false;
      return relay.stop(how);
    },
    start: () => startAgain(() => startRelay(t, targets, "--listen", address, ...tokens.again)),
  };
}

/** Returns the next connection, which must exist. */
async function nextOf(iterator) {
  const { value, done } = await iterator.next();
  assert.ok(!done, "the loop ended without another connection");
  return value;
}

/** Checks that a message is echoed. */
async function plays(connection) {
  assert.deepEqual((await echoOf(connection, pattern(500))).bytes, pattern(500));
}

/** Stops the relay of a connection, restarts it, and expects a new connection. */
async function comesBack(t, protocol, how, tokens = NO_TOKENS) {
  const relay = await startRestartable(t, protocol, tokens);
  const causes = [];
  const iterator = connections(relay.open, { ...PATIENT, onRetry: ({ cause }) => causes.push(cause) });
  const first = await nextOf(iterator);
  await plays(first);
  const second = nextOf(iterator);
  await relay.stop(how);
  // The relay has stopped, which the connection may not have noticed yet.
  const receipt = protocol.name === "RakNet" ? first.sendWithReceipt(pattern(700)).catch(({ code }) => code) : "unknown";
  await relay.start();
  const connection = await second;
  assert.notEqual(connection, first);
  await plays(connection);
  const { code, reason, relayCode } = await first.closed;
  assert.equal(code, "relay-closed");
  assert.deepEqual(causes[0], { code, reason, ...(relayCode !== undefined && { relayCode }) });
  // The message sent after the stop is lost, and its receipt reports the loss.
  assert.match(await receipt, /^(unknown|not-connected)$/);
  await iterator.return();
  assert.equal((await connection.closed).code, "local");
  return { reason, relayCode };
}

for (const protocol of PROTOCOLS) {
  test(`${protocol.name}: a client reconnects to a relay that was killed`, async (t) => {
    const { reason } = await comesBack(t, protocol, "SIGKILL");
    assert.match(reason, /no longer has the flow/);
  });

  test(`${protocol.name}: a client reconnects to a relay that was shut down`, async (t) => {
    const { relayCode } = await comesBack(t, protocol, "SIGTERM");
    assert.equal(relayCode, 1001);
  });
}

test("a client reconnects with a new token to a relay that no longer accepts the old one", async (t) => {
  assert.deepEqual(await comesBack(t, RAKNET, "SIGKILL", expiringTokens(t)), {
    reason: "the relay no longer has the flow of the connection",
    relayCode: undefined,
  });
});

test("a client whose connections run in a worker reconnects to a server that was killed", async (t) => {
  const echo = await startEcho(t);
  const started = startThread(t);
  const worker = createWorker(() => started);
  const open = (signal) => connect(`udp://${echo.address}`, { worker, silenceTimeoutMs: 5_000, timeoutMs: LIMIT_MS, signal });
  const iterator = connections(open, PATIENT);
  const first = await nextOf(iterator);
  await plays(first);
  await echo.stop();
  // The client detects a missing server only while an acknowledgement is outstanding.
  const receipt = first.sendWithReceipt(pattern(700));
  const second = nextOf(iterator);
  assert.equal((await first.closed).code, "lost");
  assert.equal(await receipt, "unknown");
  await startAgain(() => startEcho(t, "--listen", echo.address));
  await plays(await second);
  await iterator.return();
});

test("a client refused by the relay or the server does not reconnect", async (t) => {
  const echo = await startEcho(t, "--password", "snow");
  const relay = await startRelay(t, { game: echo.address });
  const attempt = async (more) => {
    let attempts = 0;
    const open = (signal) => {
      attempts += 1;
      return connect(`ws://${relay.address}/ws`, { ...USUAL, webSocket: WebSocket, ...more, signal });
    };
    const iterator = connections(open, PATIENT);
    await assert.rejects(iterator.next(), (error) => error instanceof RakwireError && !isTransient(error));
    assert.equal(attempts, 1);
    assert.deepEqual(await iterator.next(), { value: undefined, done: true });
  };
  await attempt({ target: "missing" });
  await attempt({ password: "ice" });
  await attempt({});
  await attempt({ target: undefined });
});

test("clients disconnected by the server reconnect only if shouldRetry returns true", async (t) => {
  const server = async (more) => {
    const fakes = [await openFake("raknet"), await openFake("raknet")];
    const waiting = [...fakes];
    const iterator = connections(async () => waiting.shift().connection, { ...PATIENT, ...more });
    assert.equal(await nextOf(iterator), fakes[0].connection);
    const second = iterator.next();
    fakes[0].end();
    return { fakes, iterator, second: await second };
  };
  assert.deepEqual((await server({})).second, { value: undefined, done: true });
  const asked = [];
  const shouldRetry = (cause) => asked.push(cause.code) > 0 && (cause.code === "remote" || isTransient(cause));
  const { fakes, iterator, second } = await server({ shouldRetry });
  assert.equal(second.value, fakes[1].connection);
  assert.deepEqual(asked, ["remote"]);
  // `shouldRetry` is not called for a connection that was closed locally.
  const end = iterator.next();
  void second.value.close();
  fakes[1].wake();
  assert.deepEqual([await end, asked], [{ value: undefined, done: true }, ["remote"]]);
});

/** The codes of transient connect errors and closes. */
const TRANSIENT = ["lost", "relay-unreachable", "server-unreachable", "no-answer", "timeout", "server-full", "recently-connected", "already-connected"];
const FINAL = ["local", "remote", "banned", "invalid-password", "invalid-token", "public-key-mismatch", "incompatible-protocol", "bad-option", "no-transport", "internal", "no-memory"];

test("isTransient decides by the code of the error or the close", () => {
  for (const code of TRANSIENT) assert.equal(isTransient(new RakwireError(code, "why")), true, code);
  for (const code of FINAL) assert.equal(isTransient({ code, reason: "why" }), false, code);
  const closed = (relayCode) => isTransient({ code: "relay-closed", reason: "why", relayCode });
  for (const code of [undefined, 1001, 1006, 1011, 1012, 1013, 1014, 4408, 4429]) assert.equal(closed(code), true, String(code));
  for (const code of [1000, 1002, 1003, 1009, 4400, 4401, 4403, 4404, 4409, 4410]) assert.equal(closed(code), false, String(code));
  // The next connection starts a new worker. A worker that cannot be started will fail again.
  assert.equal(isTransient({ code: "worker-unavailable", reason: "why" }), true);
  assert.equal(isTransient(new RakwireError("worker-unavailable", "why")), false);
  for (const other of [undefined, null, 7, "lost", new Error("lost"), {}]) assert.equal(isTransient(other), false, String(other));
});

/** Mocks timers and removes the randomness of pauses. Returns the list of pauses. */
function mockPauses(t) {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const mock = { now: 0, random: 1, pauses: [] };
  t.mock.method(performance, "now", () => mock.now);
  t.mock.method(Math, "random", () => mock.random);
  mock.onRetry = ({ failures, delayMs }) => mock.pauses.push([failures, delayMs]);
  /** Advances the clock to the end of the last pause. Checks that the attempt does not begin earlier. */
  mock.pass = async (begins) => {
    const [, delayMs] = mock.pauses.at(-1);
    t.mock.timers.tick(delayMs - 1);
    await settle();
    assert.equal(begins(), false, `an attempt began before its pause of ${delayMs} ms was over`);
    t.mock.timers.tick(1);
    await settle();
  };
  return mock;
}

const gone = () => new RakwireError("relay-unreachable", "gone");

test("pauses double up to maxDelayMs, and the last attempt fails with its error", async (t) => {
  const mock = mockPauses(t);
  const errors = Array.from({ length: 6 }, gone);
  let attempts = 0;
  const options = { maxAttempts: 6, minDelayMs: 100, maxDelayMs: 500, onRetry: mock.onRetry };
  const first = connections(() => Promise.reject(errors[attempts++]), options).next();
  const thrown = assert.rejects(first, (error) => error === errors[5]);
  await settle();
  for (let failed = 1; failed < 6; failed++) {
    assert.equal(attempts, failed);
    await mock.pass(() => attempts > failed);
  }
  await thrown;
  assert.deepEqual(mock.pauses, [[1, 100], [2, 200], [3, 400], [4, 500], [5, 500]]);
});

test("a random pause is at least half of its maximum", async (t) => {
  const mock = mockPauses(t);
  mock.random = 0;
  let attempts = 0;
  const iterator = connections(() => Promise.reject((attempts++, gone())), { maxAttempts: 3, minDelayMs: 100, onRetry: mock.onRetry });
  const thrown = assert.rejects(iterator.next(), fails("relay-unreachable", /gone/));
  await settle();
  await mock.pass(() => attempts > 1);
  await mock.pass(() => attempts > 2);
  await thrown;
  assert.deepEqual(mock.pauses, [[1, 50], [2, 100]]);
});

test("a short connection does not reset the back-off, and a long connection does", async (t) => {
  const fakes = [];
  for (let count = 0; count < 5; count++) fakes.push(await openFake("raknet"));
  const mock = mockPauses(t);
  let opened = 0;
  const options = { minDelayMs: 100, maxAttempts: 1, onRetry: mock.onRetry };
  const iterator = connections(async () => fakes[opened++].connection, options);
  await nextOf(iterator);
  for (const lastedMs of [0, 4_999, 0, 5_000]) {
    const current = opened;
    const next = iterator.next();
    mock.now += lastedMs;
    fakes[current - 1].loseRelay();
    await settle();
    await mock.pass(() => opened > current);
    assert.equal((await next).value, fakes[current].connection);
  }
  assert.deepEqual(mock.pauses, [[0, 100], [0, 200], [0, 400], [0, 100]]);
});

test("a signal cancels a pause with its reason, and an aborted signal allows no attempt", async (t) => {
  const mock = mockPauses(t);
  const { signal, abort, count } = watchedSignal();
  const reason = new Error("enough");
  let attempts = 0;
  const iterator = connections(() => Promise.reject((attempts++, gone())), { signal, onRetry: mock.onRetry });
  const thrown = assert.rejects(iterator.next(), reason);
  await settle();
  assert.deepEqual(mock.pauses, [[1, 500]]);
  abort(reason);
  await thrown;
  t.mock.timers.tick(60_000);
  await settle();
  assert.deepEqual([attempts, count()], [1, 0]);
  assert.deepEqual(await iterator.next(), { value: undefined, done: true });
  // An already aborted signal allows no attempt.
  await assert.rejects(connections(() => Promise.reject((attempts++, gone())), { signal }).next(), reason);
  assert.equal(attempts, 1);
});

test("aborting cancels an attempt and closes a connection that opens afterwards", async () => {
  const { signal, abort } = watchedSignal();
  const fake = await openFake("raknet");
  const reason = new Error("enough");
  let open;
  const iterator = connections(() => new Promise((resolve) => (open = resolve)), { signal });
  const thrown = assert.rejects(iterator.next(), reason);
  await settle();
  abort(reason);
  await thrown;
  open(fake.connection);
  await settle();
  fake.wake();
  assert.equal((await fake.connection.closed).code, "local");
});

test("a signal closes the open connection", async () => {
  const { signal, abort, count } = watchedSignal();
  const fake = await openFake("raknet");
  const reason = new Error("enough");
  const iterator = connections(async () => fake.connection, { signal });
  await nextOf(iterator);
  const thrown = assert.rejects(iterator.next(), reason);
  await settle();
  abort(reason);
  await thrown;
  fake.wake();
  assert.deepEqual([(await fake.connection.closed).code, count()], ["local", 0]);
});

test("leaving the loop closes the connection", async () => {
  for (const leave of ["break", "throw"]) {
    const fake = await openFake("raknet");
    const play = async () => {
      for await (const connection of connections(async () => fake.connection)) {
        assert.equal(connection, fake.connection);
        // After the call of `disconnect`, the fake peer reports the close.
        queueMicrotask(() => setTimeout(fake.wake));
        if (leave === "break") break;
        throw new Error("out of here");
      }
    };
    await (leave === "break" ? play() : assert.rejects(play, /out of here/));
    assert.equal((await fake.connection.closed).code, "local", leave);
  }
});

test("messages received by a lost connection can be read after it is closed", async () => {
  const fakes = [await openFake("raknet"), await openFake("raknet")];
  const waiting = [...fakes];
  const iterator = connections(async () => waiting.shift().connection, PATIENT);
  const first = await nextOf(iterator);
  fakes[0].arrive(0x8601, 0x8602);
  fakes[0].loseRelay();
  assert.equal(await nextOf(iterator), fakes[1].connection);
  const numbers = [];
  for await (const { bytes } of first) numbers.push(bytes[1]);
  assert.deepEqual([numbers, first.stats().messagesDiscarded], [[1, 2], 0]);
});

test("invalid options throw immediately", () => {
  const never = () => assert.fail("no connection must be opened");
  for (const options of [{ maxAttempts: 0 }, { maxAttempts: 1.5 }, { minDelayMs: 0 }, { minDelayMs: 200, maxDelayMs: 100 }, { maxDelayMs: 2 ** 31 }, { shouldRetry: true }, { onRetry: "why" }]) {
    assert.throws(() => connections(never, options), fails("bad-option", /maxAttempts|DelayMs|functions/), JSON.stringify(options));
  }
  connections(never, { maxAttempts: Infinity, minDelayMs: 60_000 });
});
