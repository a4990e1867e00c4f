// Replication: against runs recorded with the Rust implementation, with malicious and flooding servers, and over UDP
// with a server in Rust.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { connect } from "rakwire";
import { Replicas } from "rakwire/replication";

import { openFake } from "./fake-peer.mjs";
import { openWith } from "./package-page.mjs";
import { fails, LIMIT_MS, startPluginExample, until } from "./support.mjs";

const read = (name) => readFileSync(new URL(name, import.meta.url), "utf8");
const VECTORS = JSON.parse(read("replication.json"));
const RUNS = JSON.parse(read("replication_runs.json"));
const hex = (text) => Uint8Array.from(Buffer.from(text, "hex"));
const text = (bytes) => Buffer.from(bytes).toString("hex");
const settle = () => new Promise((resolve) => setImmediate(resolve));

/** The classes and limits of the Rust tests. */
const CLASSES = {
  wide: { a: { bits: 16, short: 5 }, b: { bits: 32, short: 1 }, c: { bits: 1 }, d: { bits: 10, short: 9 } },
  narrow: { e: { bits: 7, short: 3 } },
};
const NAMES = Object.keys(CLASSES);
const LIMITS = { classes: CLASSES, maxEntities: 8, maxBytes: 48 };
const UPDATES = Object.values(RUNS).flat().filter(({ update }) => update !== undefined);

const nameOf = ({ id }) => `${id % 65_536}.${Math.floor(id / 65_536)}`;
const fieldsOf = ({ class: name }) => Object.keys(CLASSES[name]);
const described = (replica) => [nameOf(replica), NAMES.indexOf(replica.class), replica.isOwner, ...fieldsOf(replica).map((field) => replica.get(field))].join(" ");
const state = (replicas) => [...replicas].map(described).join("; ");
const REASONS = { destroyed: "Destroyed", "out-of-scope": "OutOfScope", disconnected: "Disconnected" };

function eventOf({ kind, replica, reason }) {
  const detail = kind === "removed" ? ` ${REASONS[reason]}` : "";
  return kind === "owner-changed" ? `${nameOf(replica)} owner ${replica.isOwner}` : `${nameOf(replica)} ${kind}${detail}`;
}

/** Creates replicas of a server that sends messages chosen by the test. */
async function hostile(options = LIMITS, protocol = "raknet") {
  const fake = await openFake(protocol);
  const replicas = new Replicas(options);
  const [events, sent] = [[], []];
  replicas.onEvent = (event) => events.push(eventOf(event));
  replicas.join(fake.connection);
  await settle();
  const { send } = fake.peer;
  fake.peer.send = function (bytes, delivery) {
    send.call(this, bytes);
    if (bytes[0] === 0x83 && bytes[1] === 2) {
      return;
    }
    sent.push({ bytes: bytes.slice(), reliability: delivery & 7 });
  };
  const say = (...all) => {
    fake.peer.events.push(...all.map((bytes) => (callbacks) => callbacks.onMessage({ bytes, reliability: "unreliable", channel: 0 })));
    fake.wake();
  };
  /** Returns the messages sent since the last call. */
  const takeSent = () => sent.splice(0).map(({ bytes }) => text(bytes));
  return { ...fake, replicas, events, sent, say, takeSent };
}

/** Pseudorandom numbers below a limit, the same in each run. */
function randomNumbers(seed) {
  let state = seed;
  return (end) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * end);
  };
}

test("updates are applied and answered as in the test vectors", async () => {
  const { replicas, say, sent, takeSent } = await hostile();
  const messages = VECTORS.map(({ hex: bytes }) => bytes);
  const [created, , moved, , given, , ownStates, removed] = messages;
  const check = async (bytes, entities) => {
    say(hex(bytes));
    await settle();
    assert.deepEqual([takeSent(), state(replicas)], [[messages[messages.indexOf(bytes) + 1]], entities]);
  };
  await check(created, "0.1 1 false 5; 1.1 0 false 1000 4294967295 1 513");
  await check(moved, "0.1 1 false 5; 1.1 0 false 995 0 1 0");
  await check(given, "0.1 1 true 5; 1.1 0 false 40000 0 1 0");
  assert.equal(replicas.get(65_536).set("e", 6), true);
  assert.equal(replicas.get(65_537).set("a", 6), false);
  await settle();
  assert.deepEqual(sent.map(({ reliability }) => reliability), [3]);
  assert.deepEqual(takeSent(), [ownStates]);
  await check(removed, "");
  assert.deepEqual([replicas.stats(), replicas.tick], [{ updates: 4, late: 0, malformed: 0, mismatched: 0 }, 4]);
});

test("a server with other classes is reported, and its updates are dropped", async () => {
  const { replicas, say } = await hostile();
  const mismatches = [];
  replicas.onMismatch = () => mismatches.push(replicas.stats().mismatched);
  say(hex("82000000000000000000000000"), hex(VECTORS[0].hex));
  await settle();
  assert.deepEqual([mismatches, replicas.stats()], [[0], { updates: 0, late: 0, malformed: 0, mismatched: 2 }]);
  assert.equal(state(replicas), "");
});

for (const [name, steps] of Object.entries(RUNS)) {
  test(`replicas have the same events and state as in Rust: ${name}`, async () => {
    const { replicas, connection, events, say, takeSent } = await hostile();
    for (const [number, step] of steps.entries()) {
      const before = replicas.stats();
      if (step.leave) {
        replicas.leave();
        replicas.join(connection);
        await settle();
      } else if (step.set) {
        const [id, field, value] = step.set;
        const replica = [...replicas].find((other) => nameOf(other) === id);
        assert.equal(replica.set(fieldsOf(replica)[field], value), replica.isOwner);
      } else {
        say(hex(step.update));
        assert.deepEqual(replicas.stats(), { ...before, [step.counted]: before[step.counted] + 1 }, `step ${number}`);
      }
      await settle();
      const found = { entities: state(replicas), events: events.splice(0).sort(), sent: takeSent() };
      assert.deepEqual(found, { entities: step.entities, events: step.events, sent: step.sent }, `step ${number}`);
    }
    assert.ok(UPDATES.length > 200);
  });
}

test("updates are acknowledged immediately and unreliably in both protocols, and unsent acknowledgements are dropped", async () => {
  for (const protocol of ["raknet", "game"]) {
    const { say, sent, takeSent, peer, replicas } = await hostile(LIMITS, protocol);
    say(hex(VECTORS[0].hex), hex(VECTORS[2].hex), hex(VECTORS[4].hex));
    await settle();
    assert.deepEqual(sent.map(({ reliability }) => reliability), [0]);
    assert.deepEqual(takeSent(), [VECTORS[5].hex]);
    // An acknowledgement that does not fit into the send memory is dropped, because the next one repeats its contents.
    peer.room = 0;
    say(hex(VECTORS[7].hex));
    await settle();
    peer.room = Infinity;
    await settle();
    assert.deepEqual([takeSent(), state(replicas)], [[], ""]);
  }
});

test("a repeated update has no effect", async () => {
  const { replicas, events, say } = await hostile();
  const honest = RUNS.honest.slice(0, RUNS.honest.findIndex(({ leave }) => leave)).filter(({ update }) => update !== undefined);
  for (const [number, { update }] of honest.entries()) {
    say(hex(update));
    const before = state(replicas);
    events.length = 0;
    say(...honest.slice(Math.max(0, number - 40), number + 1).map((earlier) => hex(earlier.update)));
    assert.deepEqual([state(replicas), events], [before, []], `update ${number}`);
  }
});

test("an update with an invalid part is dropped completely", async () => {
  const { replicas, events, say, takeSent } = await hostile();
  const whole = hex(VECTORS[0].hex);
  for (let length = 1; length < whole.length; length++) {
    say(whole.subarray(0, length));
  }
  say(Uint8Array.of(...whole, 0));
  // A valid record for slot 0, and a record for slot 8, which does not exist.
  say(hex("82000000015823000000"));
  // An unknown class, tick 0, a gamma code with 17 leading zeros, and a message above the length limit.
  say(hex("8200000001580040800000000000"), hex("82000000005fc0"), hex("820000000100004000"), new Uint8Array(49).fill(130));
  await settle();
  assert.deepEqual([state(replicas), events, takeSent()], ["", [], []]);
  const { updates, malformed } = replicas.stats();
  assert.deepEqual([updates, malformed], [0, whole.length + 5]);
  say(whole);
  assert.equal([...replicas].length, 2);
});

test("replication continues after random bytes, modified messages and floods", async () => {
  const random = randomNumbers(11);
  const { replicas, events, say, sent } = await hostile();
  let count = 0;
  for (let round = 0; round < 400; round++) {
    const bytes = random(2) === 0 ? Uint8Array.from({ length: random(60) }, () => random(256)) : hex(UPDATES[random(UPDATES.length)].update);
    const flood = Array.from({ length: 10 }, () => {
      const changed = Uint8Array.of(130, 0, 0, ...bytes.subarray(3, random(bytes.length + 1)));
      changed[5 + random(Math.max(1, changed.length - 5))] ^= 1 << random(8);
      return changed;
    });
    count += flood.length;
    say(...flood);
    await settle();
    assert.ok(sent.splice(0).length <= 1);
    const all = [...replicas];
    assert.ok(all.length <= LIMITS.maxEntities);
    for (const replica of all) {
      const widths = Object.values(CLASSES[replica.class]);
      assert.ok(fieldsOf(replica).every((field, place) => replica.get(field) < 2 ** widths[place].bits));
      assert.equal(replicas.get(replica.id), replica);
    }
    // Each update causes at most three events per entity.
    assert.ok(events.splice(0).length <= 3 * LIMITS.maxEntities * flood.length);
  }
  const { updates, late, malformed } = replicas.stats();
  assert.equal(updates + late + malformed, count);
  assert.ok(updates > 0 && late > 0 && malformed > 0);
});

test("an entity is found by its id and by its handle, and keeps its object after an update", async () => {
  const { replicas, say } = await hostile();
  say(hex(VECTORS[0].hex));
  const [narrow, wide] = replicas;
  const sprite = { name: "snowball" };
  wide.handle = sprite;
  assert.deepEqual([narrow.class, wide.class, narrow.id], ["narrow", "wide", 65_536]);
  assert.equal(replicas.get(wide.id), wide);
  assert.equal(replicas.find(sprite), wide);
  for (const id of [1, 131_073, -1, 0.5, NaN]) {
    assert.equal(replicas.get(id), undefined);
  }
  assert.equal(replicas.find({ ...sprite }), undefined);
  say(hex(VECTORS[2].hex));
  assert.deepEqual([replicas.get(wide.id), wide.get("a")], [wide, 995], "an update must not replace the object of an entity");
  assert.throws(() => wide.get("e"), fails("bad-option", /no field e/));
  assert.throws(() => wide.set("toString", 1), fails("bad-option", /no field/));
});

const bits = (number, width) => number.toString(2).padStart(width, "0");
const gamma = (number) => bits(number, 2 * number.toString(2).length - 1);
const packed = (all) => Uint8Array.from(all.match(/.{1,8}/g), (byte) => parseInt(byte.padEnd(8, "0"), 2));
/** The encoded name of an entity: generation 1, class "narrow", ownership term 1. */
const NAME = bits(1, 16) + bits(1, 8) + bits(1, 16);

/** Encodes an update with this record of an entity. */
const update = (index, tick, record) => packed(bits(130, 8) + bits(tick, 32) + gamma(1) + gamma(index + 1) + record);
/** Encodes an update that makes this peer the owner of an entity. */
const given = (index, tick) => update(index, tick, `10${NAME}1` + bits(5, 7));

/** Encodes the message with the states of these entities, by index. */
function states(number, values) {
  let next = 0;
  const all = values.map(([index, value]) => {
    const distance = index + 1 - next;
    next = index + 1;
    return gamma(distance) + NAME + bits(value, 7);
  });
  return text(packed(bits(0x8301, 16) + bits(number, 32) + gamma(values.length) + all.join("")));
}

const NARROW = { classes: { first: CLASSES.narrow, narrow: CLASSES.narrow }, maxEntities: 8, maxBytes: 22 };

/** Creates replicas that own the first `count` entities. By default, a message holds the states of two. */
async function owner(count, maxBytes = NARROW.maxBytes) {
  const found = await hostile({ ...NARROW, maxBytes });
  found.say(...Array.from({ length: count }, (_, index) => given(index, index + 1)));
  await settle();
  found.takeSent();
  assert.ok([...found.replicas].every(({ isOwner }) => isOwner));
  return found;
}

test("updates of the 32 ticks before the latest are applied, and older updates are not", async () => {
  const { replicas, say, takeSent } = await hostile(NARROW);
  const acknowledged = async (latest, before) => {
    await settle();
    assert.deepEqual(takeSent(), [text(packed(bits(0x8300, 16) + bits(latest, 32) + bits(before, 32)))]);
  };
  say(given(0, 10), given(1, 11));
  await acknowledged(11, 1);
  say(given(2, 43));
  await acknowledged(43, 2 ** 31);
  say(given(3, 11), given(4, 10));
  await acknowledged(43, 2 ** 31);
  assert.deepEqual([replicas.stats(), [...replicas].length], [{ updates: 4, late: 1, malformed: 0, mismatched: 0 }, 4]);
  say(given(5, 76));
  await acknowledged(76, 0);
});

test("an entity keeps the values of its owner until the owner changes", async () => {
  const { replicas, say, events, takeSent } = await owner(1);
  const [own] = replicas;
  own.set("e", 9);
  // A delta with one changed field in its full width.
  const delta = `010${bits(77, 7)}`;
  events.length = 0;
  say(update(0, 2, delta), given(0, 3));
  assert.deepEqual([own.get("e"), own.isOwner, events], [9, true, []]);
  // Another peer owned the entity in between, so earlier local changes are discarded.
  say(update(0, 4, `10${bits(1, 16)}${bits(1, 8)}${bits(3, 16)}1${bits(6, 7)}`));
  assert.deepEqual([own.get("e"), own.isOwner, events.splice(0)], [6, true, ["0.1 changed"]]);
  await settle();
  assert.equal(takeSent().length, 1, "only the acknowledgement must be sent");
  say(update(0, 5, `10${bits(1, 16)}${bits(1, 8)}${bits(4, 16)}0${bits(6, 7)}`), update(0, 6, delta));
  assert.deepEqual([own.get("e"), own.isOwner, events], [77, false, ["0.1 owner false", "0.1 changed", "0.1 changed"]]);
});

test("the highest entity index is 65,535", async () => {
  const { replicas, say } = await hostile({ ...NARROW, maxEntities: 65_536 });
  say(given(65_535, 1), update(65_536, 2, "11"));
  assert.deepEqual([...replicas].map(nameOf), ["65535.1"]);
  assert.deepEqual(replicas.stats(), { updates: 1, late: 0, malformed: 1, mismatched: 0 });
});

test("all changes until the next microtask share as few messages as possible", async () => {
  const { replicas, takeSent } = await owner(6);
  const all = [...replicas];
  all[3].set("e", 7);
  all[3].set("e", -1);
  all[1].set("e", 130);
  // Bits beyond the width of the field are discarded.
  assert.deepEqual([all[3].get("e"), all[1].get("e"), takeSent()], [127, 2, []]);
  await settle();
  assert.deepEqual(takeSent(), [states(1, [[1, 2], [3, 127]])]);
  [5, 0, 2, 1, 4].forEach((place) => all[place].set("e", place));
  await settle();
  assert.deepEqual(takeSent(), [states(2, [[0, 0], [1, 1]]), states(3, [[2, 2], [4, 4]]), states(4, [[5, 5]])]);
  await settle();
  assert.deepEqual(takeSent(), []);
  // Changes after an `await` are sent in a separate message, even if only a microtask passed.
  all[0].set("e", 1);
  await null;
  all[0].set("e", 2);
  await settle();
  assert.deepEqual(takeSent(), [states(5, [[0, 1]]), states(6, [[0, 2]])]);
  const small = await owner(2, 18);
  [...small.replicas].forEach((replica) => replica.set("e", 8));
  await settle();
  assert.deepEqual(small.takeSent(), [states(1, [[0, 8]]), states(2, [[1, 8]])]);
});

test("states that were not accepted are sent later with their current values, unless the entity was lost", async () => {
  const { replicas, takeSent, peer, wake, say, end } = await owner(3);
  const [first, , third] = replicas;
  peer.room = 0;
  for (let value = 0; value < 100; value++) {
    first.set("e", value);
    third.set("e", 3);
    await settle();
  }
  // Another peer now owns the entity, so unsent changes are discarded.
  say(update(2, 9, `10${bits(1, 16)}${bits(1, 8)}${bits(2, 16)}0${bits(6, 7)}`));
  assert.deepEqual([third.isOwner, third.get("e"), third.set("e", 7), third.get("e")], [false, 6, false, 6]);
  peer.room = Infinity;
  wake();
  await until(() => replicas.stats().updates === 4, "the update is applied");
  await settle();
  const sentStates = takeSent().filter((message) => message.startsWith("8301"));
  assert.equal(sentStates.length, 1);
  assert.equal(sentStates[0].slice(12), states(0, [[0, 99]]).slice(12));
  peer.room = 0;
  first.set("e", 1);
  await settle();
  end();
  await settle();
  assert.deepEqual([first.isOwner, first.set("e", 2), [...replicas], takeSent()], [false, false, [], []]);
});

test("entities are removed when the connection closes, and return with a new connection", async () => {
  const { replicas, connection, events, say, end } = await hostile();
  const other = await openFake("raknet");
  replicas.join(connection);
  assert.throws(() => replicas.join(other.connection), fails("bad-option", /another connection/));
  assert.throws(() => new Replicas(LIMITS).join(connection), fails("bad-option", /another plugin/));
  say(hex(VECTORS[0].hex));
  const [first] = replicas;
  events.length = 0;
  end();
  await settle();
  assert.deepEqual([events, [...replicas], replicas.tick], [["0.1 removed Disconnected", "1.1 removed Disconnected"], [], 0]);
  assert.equal(first.get("e"), 5, "a removed entity must keep its last values");
  replicas.join(other.connection);
  await settle();
  other.peer.events.push((callbacks) => callbacks.onMessage({ bytes: hex(VECTORS[0].hex), reliability: "unreliable", channel: 0 }));
  other.wake();
  assert.equal([...replicas].length, 2);
  // After leaving, nothing is acknowledged.
  replicas.leave();
  await settle();
  assert.deepEqual([[...replicas], replicas.tick], [[], 0]);
});

test("an exception of a listener is reported, and after leaving all removals are reported", async (t) => {
  const reported = [];
  globalThis.reportError = (error) => reported.push(error);
  t.after(() => delete globalThis.reportError);
  const { replicas, say } = await hostile();
  const events = [];
  replicas.onEvent = (event) => {
    events.push(eventOf(event));
    replicas.leave();
    throw new Error("no");
  };
  say(hex(VECTORS[0].hex));
  assert.deepEqual(events, ["0.1 created", "1.1 created", "0.1 removed Disconnected", "1.1 removed Disconnected"]);
  assert.equal(reported.length, 4);
});

test("invalid classes and limits are errors", () => {
  const bad = [
    [{}, /1 to 256 classes/],
    [Object.fromEntries(Array.from({ length: 257 }, (_, number) => [`c${number}`, {}])), /1 to 256 classes/],
    [{ wide: { a: { bits: 33 } } }, /bits of wide.a/],
    [{ wide: { a: { bits: 0 } } }, /bits of wide.a/],
    [{ wide: { a: { bits: 8, short: 8 } } }, /short form of wide.a/],
    [{ wide: Object.fromEntries(Array.from({ length: 33 }, (_, number) => [`f${number}`, { bits: 1 }])) }, /more than 32 fields/],
    [{ wide: { b: { bits: 1 }, 7: { bits: 1 } } }, /name 7/],
    [{ 0: {} }, /name 0/],
  ];
  bad.forEach(([classes, expected]) => assert.throws(() => new Replicas({ classes }), fails("bad-option", expected)));
  const long = { wide: Object.fromEntries(Array.from({ length: 8 }, (_, number) => [`f${number}`, { bits: 32 }])) };
  assert.throws(() => new Replicas({ classes: long, maxBytes: 40 }), fails("bad-option", /does not fit into 40/));
  assert.equal([...new Replicas({ classes: long, maxBytes: 60 })].length, 0);
  for (const limit of [{ maxEntities: 0 }, { maxEntities: 65_537 }, { maxBytes: 0 }, { maxBytes: 1.5 }]) {
    assert.throws(() => new Replicas({ ...LIMITS, ...limit }), fails("bad-option", new RegExp(Object.keys(limit)[0])));
  }
  assert.equal([...new Replicas({ classes: { nothing: {} }, maxEntities: 65_536 })].length, 0);
});

/** The classes of the server of the example. */
const SCENE = { player: { x: { bits: 16, short: 6 }, y: { bits: 16, short: 6 } }, flare: { brightness: { bits: 8 } } };

for (const protocol of ["raknet", "game"]) {
  test(`${protocol}: a server in Rust replicates its entities to all clients, and each client the entity that it owns`, async (t) => {
    const { address, printed } = await startPluginExample(t, "replication_server", protocol);
    const join = async () => {
      const connection = await connect(`udp://${address}`, { protocol, timeoutMs: LIMIT_MS });
      const replicas = new Replicas({ classes: SCENE, maxEntities: 64 });
      const seen = new Map();
      replicas.onEvent = ({ kind, replica, reason }) => seen.set(`${replica.class} ${reason ?? kind}`, replica);
      replicas.join(connection);
      await until(() => seen.has("player owner-changed"), "the client owns an entity");
      return { connection, replicas, seen, own: seen.get("player owner-changed") };
    };
    const [one, other] = [await join(), await join()];
    assert.ok(one.own.isOwner && one.own.id !== other.own.id);
    await until(() => one.replicas.get(65_536), "the client has the entity `walker`");
    const walker = one.replicas.get(65_536);
    const start = walker.get("x");
    await until(() => walker.get("x") > start + 20, "the walker has moved");
    assert.deepEqual([walker.get("x") % 5, walker.get("y"), walker.set("x", 1)], [0, 700, false]);
    await until(() => one.seen.has("flare changed") && one.seen.has("flare destroyed"), "a flare has changed and was destroyed");
    for (let x = 1_000; x <= 1_200; x += 10) {
      assert.ok(one.own.set("x", x) && one.own.set("y", 70_000));
      await settle();
    }
    await until(() => printed().includes("is at [1200, 4464]"), "the server prints the position that the first client set");
    const seen = other.replicas.get(one.own.id);
    await until(() => seen.get("x") === 1_200 && seen.get("y") === 4_464, "the second client has the position that the first client set");
    assert.equal(seen.isOwner, false);
    await one.connection.close();
    await until(() => other.seen.has("player destroyed"), "the entity of the first client is destroyed at the second client");
    assert.equal(one.replicas.tick, 0);
    assert.deepEqual([one.replicas, other.replicas].map((replicas) => replicas.stats().malformed), [0, 0]);
    await other.connection.close();
  });
}

test("a page gets the entities of a server in Rust through a relay", async (t) => {
  const { address, printed } = await startPluginExample(t, "replication_server");
  const { page, url } = await openWith(t, { game: address });
  const found = await page.evaluate(async ([relay, classes]) => {
    const [{ connect }, { Replicas }] = await Promise.all(["index", "replication"].map((name) => import(`/dist/${name}.js`)));
    const connection = await connect(relay, { target: "game", timeoutMs: 60_000 });
    const replicas = new Replicas({ classes });
    const own = new Promise((resolve) => {
      replicas.onEvent = ({ kind, replica }) => kind === "owner-changed" && resolve(replica);
    });
    replicas.join(connection);
    (await own).set("x", 4_711);
    const walker = () => replicas.get(65_536);
    while (!(walker()?.get("x") >= 20)) {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    return [walker().get("y"), replicas.stats().malformed];
  }, [url, SCENE]);
  assert.deepEqual(found, [700, 0]);
  await until(() => printed().includes("is at [4711, 100]"), "the server prints the position that the client set");
});

test("the example in replication.md runs", async (t) => {
  const { address, printed } = await startPluginExample(t, "replication_server");
  const [, code] = /^```js\n(.*?)^```$/ms.exec(read("replication.md"));
  const source = code.replace(/from "(rakwire[^"]*)"/g, (_, entry) => `from ${JSON.stringify(import.meta.resolve(entry))}`);
  const { play } = await import(`data:text/javascript,${encodeURIComponent(source)}`);
  const shown = new Set();
  const { connection, replicas } = await play(`udp://${address}`, (line) => shown.add(line));
  await until(() => printed().includes("is at [4711,"), "the server prints the position that the client set");
  await until(() => shown.size > 5, "the example shows the walker");
  assert.ok([...replicas].length >= 2);
  await connection.close();
});
