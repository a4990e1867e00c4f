// Unit tests of the TypeScript modules.

import assert from "node:assert/strict";
import { test } from "node:test";

import { RakwireError } from "../dist/errors.js";
import { ListenerSet } from "../dist/events.js";
import { readAddresses } from "../dist/raknet-wire.js";
import { ReceiveQueue } from "../dist/receive-queue.js";
import { readDelivery, withReceipt } from "../dist/sending.js";
import { targetAddressSpace, withPermission } from "../dist/transport/local-network.js";
import { checkToken, targetUrl } from "../dist/transport/transport.js";
import { beforeAbort, WaitList } from "../dist/waits.js";
import { watchedSignal } from "./waits.mjs";

const message = (id) => ({ bytes: Uint8Array.of(id), reliability: "reliable", channel: 0 });
const NO_LISTENERS = { isEmpty: true, dispatch: () => assert.fail("an event was dispatched although there is no listener") };
/** Decodes the number of a delivery. */
const unpacked = (number) => ({ reliability: number & 7, channel: number >> 5, priority: (number >> 3) & 3 });
const isBadOption = (error) => error instanceof RakwireError && error.code === "bad-option";

test("delivery options have defaults, and invalid delivery options are rejected", () => {
  assert.deepEqual(unpacked(readDelivery({})), { reliability: 3, channel: 0, priority: 2 });
  assert.deepEqual(unpacked(readDelivery({ reliability: "unreliable-sequenced", channel: 31, priority: "immediate" })), {
    reliability: 1,
    channel: 31,
    priority: 0,
  });
  for (const options of [{ reliability: "best" }, { priority: "" }, { channel: 32 }, { channel: -1 }, { channel: 0.5 }]) {
    assert.throws(() => readDelivery(options), isBadOption, JSON.stringify(options));
  }
});

test("messages with three reliabilities can have receipts, and sequenced messages cannot", () => {
  const numbers = { "unreliable": 5, "reliable": 6, "reliable-ordered": 7 };
  for (const [reliability, number] of Object.entries(numbers)) {
    const delivery = withReceipt(readDelivery({ reliability, channel: 4, priority: "low" }));
    assert.deepEqual(unpacked(delivery), { reliability: number, channel: 4, priority: 3 });
  }
  for (const reliability of ["unreliable-sequenced", "reliable-sequenced"]) {
    assert.throws(() => withReceipt(readDelivery({ reliability })), isBadOption, reliability);
  }
  assert.throws(() => withReceipt(readDelivery({}, "game"), "game"), isBadOption, "the Game Protocol has no receipts");
});

test("the target is added to the URL of the relay", () => {
  assert.equal(targetUrl("ws://a:1/ws", "game").href, "ws://a:1/ws?target=game&unreachable=close");
  assert.equal(targetUrl("https://a/ws?x=1#y", "a b&c").href, "wss://a/ws?x=1&target=a+b%26c&unreachable=close");
  assert.equal(targetUrl("udp://192.0.2.7:19132", undefined).href, "udp://192.0.2.7:19132");
  assert.throws(() => targetUrl("udp://192.0.2.7", undefined), isBadOption);
  for (const [url, target] of [["ws://a", ""], ["nonsense", "x"], ["ftp://a", "x"], ["ws://a", undefined]]) {
    assert.throws(() => targetUrl(url, target), isBadOption, `${url} ${target}`);
  }
});

test("a token may contain exactly the characters that the error for an invalid token lists", () => {
  let named;
  assert.throws(() => checkToken(""), ({ code, message }) => {
    [, named] = /digits and (\S+)$/.exec(message);
    return code === "bad-option";
  });
  const isTaken = (character) => {
    try {
      return checkToken(`a${character}`) === undefined;
    } catch {
      return false;
    }
  };
  const taken = Array.from({ length: 256 }, (_, code) => String.fromCharCode(code)).filter(isTaken);
  assert.deepEqual(taken.filter((character) => !/[A-Za-z0-9]/.test(character)), [...named].sort());
  assert.equal(taken.length, 62 + named.length);
});

test("a receive queue keeps the order, reports when it is full, and returns the queued messages before it closes", async () => {
  let roomEvents = 0;
  const queue = new ReceiveQueue(NO_LISTENERS, () => roomEvents++);
  const reader = queue.iterate();
  const first = reader.next();
  queue.push(message(1));
  assert.equal((await first).value.bytes[0], 1);
  for (let id = 0; id < 256; id++) {
    assert.equal(queue.isFull, false);
    queue.push(message(id));
  }
  assert.equal(queue.isFull, true);
  queue.close();
  let expected = 0;
  for await (const { bytes } of reader) {
    assert.equal(bytes[0], expected++);
  }
  assert.equal(expected, 256);
  assert.equal(roomEvents, 1);
});

test("a receive queue counts the bytes of its messages", async () => {
  const queue = new ReceiveQueue(NO_LISTENERS, () => undefined);
  const half = { ...message(1), bytes: new Uint8Array(8 * 1024 * 1024 - 64) };
  queue.push(half);
  assert.equal(queue.isOverByteLimit, false);
  queue.push(half);
  assert.equal(queue.isOverByteLimit, true);
  await queue.iterate().next();
  assert.equal(queue.isOverByteLimit, false);
  queue.push(half);
  assert.equal(queue.isOverByteLimit, true);
  assert.equal(queue.drain().length, 2);
  assert.equal(queue.isOverByteLimit, false);
});

test("the bytes of addresses are converted to text", () => {
  const ipv4 = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 7, 0x4a, 0xbc];
  const ipv6 = [0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 1];
  assert.deepEqual(readAddresses(Uint8Array.from([...ipv4, ...ipv6, 1])), ["192.0.2.7:19132", "[2001:db8::7]:1"]);
  assert.deepEqual(readAddresses(new Uint8Array(0)), []);
});

test("removing a listener also removes its abort listener from the signal", () => {
  const { signal, count } = watchedSignal();
  const listeners = new ListenerSet();
  const listener = () => undefined;
  const added = listeners.add(listener, { signal });
  assert.equal(count(), 1);
  assert.equal(listeners.remove(listener, undefined), added);
  assert.deepEqual([count(), listeners.isEmpty], [0, true]);
});

test("a settled wait is removed from the list of waits and from its signal", async () => {
  const { signal, abort, count } = watchedSignal();
  const waits = new WaitList();
  const [first, second, third] = [waits.add(signal), waits.add(signal), waits.add(signal)];
  assert.deepEqual([waits.all(), count()], [[first, second, third], 3]);
  second.resolve(2);
  assert.deepEqual([waits.all(), waits.first, count()], [[first, third], first, 2]);
  first.reject(new Error("no"));
  assert.deepEqual([waits.all(), count()], [[third], 1]);
  assert.equal(await second.promise, 2);
  await assert.rejects(first.promise, /no/);
  assert.equal(await beforeAbort(signal, Promise.resolve(4)), 4);
  assert.equal(count(), 1);
  abort(new Error("enough"));
  await assert.rejects(third.promise, /enough/);
  await assert.rejects(waits.add(signal).promise, /enough/);
  assert.deepEqual([waits.all(), count()], [[], 0]);
});

/** The address space that follows from the host of a relay. */
const SPACES = {
  loopback: ["localhost", "game.localhost", "127.0.0.1", "127.255.255.254", "[::1]"],
  local: [
    ...["10.0.0.1", "10.255.255.254", "172.16.0.1", "172.31.255.254", "192.168.0.1", "192.168.255.254"],
    ...["100.64.0.1", "100.99.0.1", "100.127.255.254", "169.254.0.1"],
    ...["[fc00::1]", "[fdff:1::1]", "[fe80::1]", "[fe9f::1]", "[feaf::1]", "[febf::1]"],
    ...["printer", "PRINTER", "relay.local", "relay.internal", "relay.lan", "relay.home.arpa"],
  ],
  public: [
    ...["9.255.255.255", "11.0.0.1", "110.0.0.1", "172.15.255.254", "172.32.0.1", "192.167.0.1", "192.169.0.1", "128.0.0.1"],
    ...["100.63.255.254", "100.128.0.1", "169.253.0.1", "169.255.0.1", "203.0.113.7"],
    ...["[fbff::1]", "[fe00::1]", "[fe7f::1]", "[fec0::1]", "[ff02::1]", "[fd::1]", "[fc1::1]", "[fe8::1]", "[::2]", "[1::1]", "[2001:db8::1]"],
    ...["game.example", "localhost.example", "notlocalhost.example", "local.example", "10.example", "10.0.0.1.example", "lan.arpa"],
  ],
};

/** Mocks the location of a page and the permissions of its browser until the end of the test. */
function become(t, location, query) {
  for (const [name, value] of Object.entries({ location, navigator: { permissions: { query } } })) {
    const before = Object.getOwnPropertyDescriptor(globalThis, name);
    Object.defineProperty(globalThis, name, { value, configurable: true });
    t.after(() => (before === undefined ? delete globalThis[name] : Object.defineProperty(globalThis, name, before)));
  }
}

test("the required permission follows from the addresses of the relay and of the page", async (t) => {
  const origins = { public: "https://game.example", local: "https://192.168.0.9", loopback: "https://localhost:8443" };
  const [order, asked, location] = [Object.keys(origins), [], {}];
  become(t, location, async ({ name }) => {
    asked.push(name);
    return { state: "prompt" };
  });
  for (const [from, origin] of Object.entries(origins)) {
    location.origin = origin;
    for (const [space, hosts] of Object.entries(SPACES)) {
      for (const host of hosts) {
        const error = new RakwireError("relay-unreachable", "no relay");
        const thrown = await withPermission(Promise.reject(error), `ws://${host}:8080/ws`).catch((reason) => reason);
        const isForeign = order.indexOf(space) > order.indexOf(from);
        assert.deepEqual([host, asked.splice(0)], [host, isForeign ? [`${space}-network`] : []]);
        assert.equal(/ the page needs https /.test(thrown.message), isForeign, host);
      }
    }
  }
});

test("an https page declares the local network in http requests except to loopback addresses", (t) => {
  become(t, { origin: "https://game.example" }, () => assert.fail("no permission must be requested"));
  for (const [space, hosts] of Object.entries(SPACES)) {
    for (const host of hosts) {
      const expected = space === "loopback" ? {} : { targetAddressSpace: "local" };
      assert.deepEqual([host, targetAddressSpace(new URL(`http://${host}:8080`))], [host, expected]);
      assert.deepEqual(targetAddressSpace(new URL(`https://${host}:8080`)), {});
    }
  }
});
