// The small parts of the TypeScript face.

import assert from "node:assert/strict";
import { test } from "node:test";

import { readDelivery, withReceipt } from "../dist/delivery.js";
import { RakwireError } from "../dist/errors.js";
import { Inbox } from "../dist/inbox.js";
import { relayUrl } from "../dist/transport/websocket.js";

const message = (id) => ({ bytes: Uint8Array.of(id), reliability: "reliable", channel: 0 });
const isBadOption = (error) => error instanceof RakwireError && error.code === "bad-option";

test("deliveries have defaults, and wrong ones are refused", () => {
  assert.deepEqual(readDelivery({}), { reliability: 3, channel: 0, priority: 2 });
  assert.deepEqual(readDelivery({ reliability: "unreliable-sequenced", channel: 31, priority: "immediate" }), {
    reliability: 1,
    channel: 31,
    priority: 0,
  });
  for (const options of [{ reliability: "best" }, { priority: "" }, { channel: 32 }, { channel: -1 }, { channel: 0.5 }]) {
    assert.throws(() => readDelivery(options), isBadOption, JSON.stringify(options));
  }
});

test("three reliabilities have receipts, and sequenced ones are refused", () => {
  const numbers = { "unreliable": 5, "reliable": 6, "reliable-ordered": 7 };
  for (const [reliability, number] of Object.entries(numbers)) {
    const delivery = withReceipt(readDelivery({ reliability, channel: 4, priority: "low" }));
    assert.deepEqual(delivery, { reliability: number, channel: 4, priority: 3 });
  }
  for (const reliability of ["unreliable-sequenced", "reliable-sequenced"]) {
    assert.throws(() => withReceipt(readDelivery({ reliability })), isBadOption, reliability);
  }
  assert.throws(() => withReceipt(readDelivery({}, "game"), "game"), isBadOption, "the Game Protocol has none");
});

test("the target goes into the relay's address", () => {
  assert.equal(relayUrl("ws://a:1/ws", "game").href, "ws://a:1/ws?target=game");
  assert.equal(relayUrl("https://a/ws?x=1#y", "a b&c").href, "wss://a/ws?x=1&target=a+b%26c");
  for (const [url, target] of [["ws://a", ""], ["nonsense", "x"], ["ftp://a", "x"], ["ws://a", undefined]]) {
    assert.throws(() => relayUrl(url, target), isBadOption, `${url} ${target}`);
  }
});

test("an inbox keeps the order, says when it is full, and ends after what waits", async () => {
  let rooms = 0;
  const inbox = new Inbox(() => rooms++);
  const reader = inbox.read();
  const first = reader.next();
  inbox.put(message(1));
  assert.equal((await first).value.bytes[0], 1);
  for (let id = 0; id < 256; id++) {
    assert.equal(inbox.isFull, false);
    inbox.put(message(id));
  }
  assert.equal(inbox.isFull, true);
  inbox.close();
  let expected = 0;
  for await (const { bytes } of reader) {
    assert.equal(bytes[0], expected++);
  }
  assert.equal(expected, 256);
  assert.equal(rooms, 1);
});

test("an inbox counts the bytes of what waits in it", async () => {
  const inbox = new Inbox(() => undefined);
  const half = { ...message(1), bytes: new Uint8Array(8 * 1024 * 1024 - 64) };
  inbox.put(half);
  assert.equal(inbox.isOverfull, false);
  inbox.put(half);
  assert.equal(inbox.isOverfull, true);
  await inbox.read().next();
  assert.equal(inbox.isOverfull, false);
  inbox.put(half);
  assert.equal(inbox.isOverfull, true);
  assert.equal(inbox.takeAll().length, 2);
  assert.equal(inbox.isOverfull, false);
});
