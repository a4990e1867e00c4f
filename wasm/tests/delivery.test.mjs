// The delivery of messages to listeners, pending `receive` calls, iterators and the queue. Each message is delivered
// once.

import assert from "node:assert/strict";
import { test } from "node:test";

import { RakwireError } from "../dist/errors.js";
import { numberOf, openFake, range } from "./fake-peer.mjs";
import { watchedSignal, watchWaits } from "./waits.mjs";

/** Collects the numbers of the messages that a listener gets. */
function collector() {
  const numbers = [];
  return { numbers, listener: ({ message }) => numbers.push(numberOf(message)) };
}

/** Returns the numbers of the next messages of an iterator. */
async function take(iterator, count) {
  const numbers = [];
  while (numbers.length < count) {
    const { value, done } = await iterator.next();
    assert.ok(!done, `the iteration ended after the messages ${numbers}`);
    numbers.push(numberOf(value));
  }
  return numbers;
}

/** Returns the numbers of all messages until the connection is closed. */
async function takeAll(connection) {
  const numbers = [];
  for await (const message of connection) {
    numbers.push(numberOf(message));
  }
  return numbers;
}

/** Waits until all pending microtasks have run. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

/** Returns true if a promise is still pending. */
async function isPending(promise) {
  await settle();
  return (await Promise.race([promise, Promise.resolve(isPending)])) === isPending;
}

for (const protocol of ["raknet", "game"]) {
  test(`${protocol}: a once listener gets the first message, and iteration gets the later messages`, async () => {
    const { connection, arrive, end } = await openFake(protocol);
    const { numbers, listener } = collector();
    connection.addEventListener("message", listener, { once: true });
    arrive(...range(1, 10));
    end();
    assert.deepEqual(await takeAll(connection), range(2, 10));
    assert.deepEqual(numbers, [1]);
  });

  test(`${protocol}: messages after the removal of a listener go to iteration`, async () => {
    const { connection, arrive, end } = await openFake(protocol);
    const { numbers, listener } = collector();
    connection.addEventListener("message", listener);
    arrive(1, 2);
    connection.removeEventListener("message", listener);
    arrive(3, 4);
    await settle();
    end();
    assert.deepEqual(await takeAll(connection), [3, 4]);
    assert.deepEqual(numbers, [1, 2]);
  });

  test(`${protocol}: after a listener has removed itself, iteration gets the remaining messages`, async () => {
    const { connection, arrive } = await openFake(protocol);
    const numbers = [];
    const listener = ({ message }) => {
      numbers.push(numberOf(message));
      if (numbers.length === 2) {
        connection.removeEventListener("message", listener);
      }
    };
    connection.addEventListener("message", listener);
    arrive(...range(1, 5));
    assert.deepEqual(numbers, [1, 2]);
    assert.deepEqual(await take(connection.messages(), 3), [3, 4, 5]);
  });

  test(`${protocol}: after the signal of a listener is aborted, iteration gets the remaining messages`, async () => {
    const { connection, arrive } = await openFake(protocol);
    const { numbers, listener } = collector();
    const controller = new AbortController();
    connection.addEventListener("message", listener, { signal: controller.signal });
    arrive(1);
    controller.abort();
    arrive(2);
    connection.addEventListener("message", listener, { signal: controller.signal });
    await settle();
    arrive(3);
    assert.deepEqual(numbers, [1]);
    assert.deepEqual(await take(connection.messages(), 2), [2, 3]);
  });

  test(`${protocol}: listeners get messages before pending receive calls`, async () => {
    const { connection, arrive } = await openFake(protocol);
    const [first, second] = [collector(), collector()];
    const iterator = connection.messages();
    const asked = take(iterator, 1);
    connection.addEventListener("message", first.listener);
    connection.addEventListener("message", { handleEvent: second.listener }, { once: true });
    arrive(1, 2);
    assert.deepEqual(first.numbers, [1, 2]);
    assert.deepEqual(second.numbers, [1]);
    assert.ok(await isPending(asked));
    connection.removeEventListener("message", first.listener);
    arrive(3);
    assert.deepEqual(await asked, [3]);
  });

  test(`${protocol}: a late listener gets queued messages once and in order`, async () => {
    const { connection, arrive } = await openFake(protocol);
    const { numbers, listener } = collector();
    arrive(...range(1, 300));
    connection.addEventListener("message", listener);
    connection.addEventListener("message", listener);
    connection.addEventListener("message", listener, true);
    connection.removeEventListener("message", listener, true);
    arrive(301);
    await settle();
    assert.deepEqual(numbers, range(1, 301));
    assert.equal(connection.stats().messagesQueued, 0);
  });

  test(`${protocol}: a message that arrives while a listener runs is delivered after the current one`, async () => {
    const { connection, arrive } = await openFake(protocol);
    const numbers = [];
    connection.addEventListener("message", ({ message }) => {
      if (numberOf(message) === 1) {
        arrive(2);
      }
    });
    connection.addEventListener("message", ({ message }) => numbers.push(numberOf(message)));
    arrive(1);
    assert.deepEqual(numbers, [1, 2]);
  });

  test(`${protocol}: a new iteration continues after the last message of the previous one`, async () => {
    const { connection, arrive, end } = await openFake(protocol);
    arrive(...range(1, 6));
    const numbers = [];
    for (const most of [2, 3]) {
      for await (const message of connection) {
        numbers.push(numberOf(message));
        if (numbers.length === most) {
          break;
        }
      }
    }
    end();
    assert.deepEqual([...numbers, ...(await takeAll(connection))], range(1, 6));
  });

  test(`${protocol}: an iterator stopped while it waits takes no message from the next iterator`, async () => {
    const { connection, arrive } = await openFake(protocol);
    const first = connection.messages();
    const waiting = first.next();
    assert.ok(await isPending(waiting));
    await first.return();
    assert.deepEqual(await waiting, { done: true, value: undefined });
    assert.deepEqual(await first.next(), { done: true, value: undefined });
    arrive(1);
    assert.deepEqual(await take(connection.messages(), 1), [1]);
  });

  test(`${protocol}: two iterators share the messages without duplicates`, async () => {
    const { connection, arrive, end } = await openFake(protocol);
    const [first, second] = [takeAll(connection), takeAll(connection)];
    for (const number of range(1, 10)) {
      arrive(number);
      await settle();
    }
    end();
    const [odd, even] = await Promise.all([first, second]);
    assert.deepEqual([odd, even], [[1, 3, 5, 7, 9], [2, 4, 6, 8, 10]]);
  });

  test(`${protocol}: single receive calls and iteration can be mixed`, async () => {
    const { connection, arrive, end } = await openFake(protocol);
    const asked = connection.receive();
    arrive(1, 2, 3);
    end();
    assert.equal(numberOf(await asked), 1);
    assert.equal(numberOf(await connection.receive()), 2);
    assert.deepEqual(await takeAll(connection), [3]);
    assert.equal(await connection.receive(), undefined);
  });

  for (const [what, finish] of [["the server", "end"], ["the relay", "loseRelay"]]) {
    test(`${protocol}: messages queued when ${what} closed the connection are delivered before the close event`, async () => {
      const fake = await openFake(protocol);
      const { connection, arrive } = fake;
      arrive(...range(1, 1000));
      fake[finish]();
      assert.equal((await connection.closed).code, what === "the server" ? "remote" : "relay-closed");
      assert.equal(connection.stats().messagesQueued, 1000);
      assert.deepEqual(await take(connection.messages(), 500), range(1, 500));
      const { numbers, listener } = collector();
      connection.addEventListener("message", listener, { once: true });
      await settle();
      assert.deepEqual(numbers, [501]);
      assert.deepEqual(await takeAll(connection), range(502, 1000));
      const { messagesQueued, messagesDiscarded } = connection.stats();
      assert.deepEqual([messagesQueued, messagesDiscarded], [0, 0]);
    });
  }

  test(`${protocol}: pending receive calls return when the connection closes, even if a listener gets the messages`, async () => {
    const { connection, arrive, end } = await openFake(protocol);
    const asked = [connection.receive(), connection.messages().next(), connection.receive()];
    arrive(1);
    const { numbers, listener } = collector();
    connection.addEventListener("message", listener);
    arrive(2);
    end();
    assert.equal(numberOf(await asked[0]), 1);
    assert.deepEqual(await asked[1], { done: true, value: undefined });
    assert.equal(await asked[2], undefined);
    assert.deepEqual(numbers, [2]);
  });

  test(`${protocol}: messages beyond the queue limit stay in WebAssembly memory, even after a listener is removed`, async () => {
    const { connection, peer, arrive } = await openFake(protocol);
    const { numbers, listener } = collector();
    connection.addEventListener("message", listener, { once: true });
    arrive(...range(1, 1000));
    assert.deepEqual(numbers, [1]);
    assert.equal(connection.stats().messagesQueued, 256);
    assert.equal(peer.events.length, 1000 - 257);
    assert.deepEqual(await take(connection.messages(), 999), range(2, 1000));
    assert.equal(peer.events.length, 0);
  });

  test(`${protocol}: closing discards and counts unread messages`, async () => {
    const { connection, arrive, peer } = await openFake(protocol);
    arrive(...range(1, 300));
    assert.equal(numberOf(await connection.receive()), 1);
    peer.disconnect = () => undefined;
    const closing = connection.close();
    arrive(301);
    peer.end("local");
    arrive();
    assert.equal((await closing).code, "local");
    assert.equal(await connection.receive(), undefined);
    const { messagesQueued, messagesDiscarded } = connection.stats();
    assert.deepEqual([messagesQueued, messagesDiscarded], [0, 300]);
  });
}

test("an aborted whenClosed call leaves no listener behind", async (t) => {
  const { connection, end } = await openFake("raknet");
  const left = watchWaits(t, connection);
  const { signal, count } = watchedSignal();
  const reason = new Error("enough");
  let rounds = 0;
  for await (const _ of connection.statistics({ intervalMs: 1, signal })) {
    const controller = new AbortController();
    const waiting = connection.whenClosed({ signal: controller.signal });
    assert.equal(left(), 1);
    controller.abort(reason);
    await assert.rejects(waiting, reason);
    await assert.rejects(connection.whenClosed({ signal: AbortSignal.abort(reason) }), reason);
    assert.deepEqual([left(), count()], [0, 0]);
    rounds += 1;
    if (rounds === 20) {
      break;
    }
  }
  const closed = [connection.whenClosed(), connection.whenClosed({ signal })];
  assert.deepEqual([left(), count()], [2, 1]);
  end();
  assert.deepEqual((await Promise.all(closed)).map(({ code }) => code), ["remote", "remote"]);
  assert.equal((await connection.whenClosed({ signal })).code, "remote");
  assert.deepEqual([left(), count()], [0, 0]);
  assert.equal((await connection.closed).code, "remote");
});

test("a connection without memory for a received message closes with no-memory and notifies the server", async () => {
  const { connection, peer, arrive, wake } = await openFake("raknet");
  arrive(1);
  peer.events.push(() => {
    throw new RakwireError("no-memory", "there is no memory");
  });
  wake();
  assert.deepEqual(await connection.closed, { code: "no-memory", reason: "there is no memory" });
  assert.equal(peer.isOver, true);
  assert.deepEqual(await takeAll(connection), [1]);
});

for (const protocol of ["raknet", "game"]) {
  test(`${protocol}: setting, replacing and removing a callback loses and duplicates no message`, async () => {
    const { connection, arrive, end } = await openFake(protocol);
    const arrived = { first: [], second: [], listener: [] };
    const note = (name) => (message) => arrived[name].push(numberOf(message));
    arrive(...range(1, 3));
    connection.onMessage = note("first");
    // Queued messages follow after the caller's current code.
    assert.deepEqual(arrived.first, []);
    await settle();
    arrive(4);
    connection.onMessage = note("second");
    arrive(5, 6);
    connection.onMessage = undefined;
    arrive(...range(7, 9));
    await settle();
    const listener = ({ message }) => note("listener")(message);
    assert.equal(connection.stats().messagesQueued, 3);
    assert.equal(numberOf(await connection.receive()), 7);
    connection.addEventListener("message", listener);
    connection.onMessage = note("first");
    await settle();
    connection.removeEventListener("message", listener);
    arrive(10);
    connection.onMessage = undefined;
    arrive(11, 12);
    end();
    assert.deepEqual(await takeAll(connection), [11, 12]);
    assert.deepEqual(arrived, { first: [1, 2, 3, 4, 8, 9, 10], second: [5, 6], listener: [8, 9] });
  });
}

test("a pending reader gets the next message after a callback is removed", async () => {
  const { connection, arrive } = await openFake("raknet");
  connection.onMessage = () => undefined;
  const received = connection.receive();
  arrive(1);
  assert.equal(await isPending(received), true);
  connection.onMessage = undefined;
  arrive(2);
  assert.equal(numberOf(await received), 2);
});
