// File transfer: between two connections in memory, with the command-line tool, and with malicious and flooding peers.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";

import { connect } from "rakwire";
import { receiveFiles, sendFiles, TransferError } from "rakwire/files";

import { checkPath, Sha256 } from "../dist/files/manifest.js";
import { codeOfReason, decodeReply, decodeRequest, encodeReply, encodeRequest } from "../dist/files/wire.js";
import { openFake, openPair } from "./fake-peer.mjs";
import { folderOf } from "./keys.mjs";
import { openWith } from "./package-page.mjs";
import { fails, LIMIT_MS, startEcho, startListening, until } from "./support.mjs";

const VECTORS = JSON.parse(readFileSync(new URL("files.json", import.meta.url), "utf8"));
const hex = (text) => Uint8Array.from(Buffer.from(text, "hex"));
const toHex = (bytes) => Buffer.from(bytes).toString("hex");
const settle = () => new Promise((resolve) => setImmediate(resolve));
const digestOf = (bytes) => new Uint8Array(createHash("sha256").update(bytes).digest());
const bytesOf = (length, factor = 31) => Uint8Array.from({ length }, (_, index) => (index * factor + (index >> 8)) & 0xff);
const ended = (reason, isRemote) => (error) => error instanceof TransferError && error.code === "transfer-failed" && error.reason === reason && error.isRemote === isRemote;

/** Files in the order of their paths as bytes. */
const TREE = {
  "empty": new Uint8Array(0),
  "maps/big.bin": bytesOf(700_000),
  "maps/ice.json": bytesOf(900, 7),
  "\uff21": bytesOf(10),
  "\u{1f9ca}": bytesOf(11),
};
const filesOf = (tree) => Object.entries(tree).reverse().map(([path, content]) => ({ path, content: path.includes("big") ? new Blob([content]) : content }));

/** Reads all files of a transfer completely. */
async function readAll(transfer) {
  const tree = {};
  for await (const file of transfer) {
    assert.equal(file.offset, 0);
    tree[file.path] = await file.bytes();
  }
  return tree;
}

test("messages encode to the test vectors and decode from them, and malformed messages do not decode", () => {
  assert.equal(VECTORS.length, 9);
  const digest = (byte) => new Uint8Array(32).fill(byte);
  const page = {
    kind: "page", number: 5, files: 11, bytes: 0x12345, chunk: 1024, window: 8, first: 0,
    entries: [
      { path: Buffer.from("a"), size: 2, digest: digest(7) },
      { path: Buffer.from("b/c"), size: 0x12343, digest: digest(0xfe) },
    ],
  };
  const requests = { "list": "list", "read": "read", "find patch": "find patch", "done": "done", "receiver failed": "failed" };
  for (const { hex: expected, message, reason, bytes, base, ...fields } of VECTORS) {
    const isRequest = message in requests;
    const kind = requests[message] ?? message.replace("sender ", "");
    const code = reason && { code: codeOfReason(reason.replace(" ", "-")) };
    const value = kind === "page" ? page : { kind, ...fields, ...code, ...(bytes && { bytes: hex(bytes) }), ...(base && { base: hex(base) }) };
    const [encode, decode] = isRequest ? [encodeRequest, decodeRequest] : [encodeReply, decodeReply];
    assert.equal(toHex(encode(value)), expected, message);
    assert.equal(toHex(encode(decode(hex(expected)))), expected, message);
    assert.equal(decode(hex(`00${expected.slice(2)}`)), undefined);
    if (kind !== "data" && kind !== "page") {
      assert.deepEqual(decode(hex(expected)), value);
      assert.equal(decode(hex(`${expected}00`)), undefined);
      assert.equal(decode(hex(expected.slice(0, -2))), undefined);
    }
  }
});

test("digests equal those of the platform for any chunking", () => {
  for (const length of [0, 1, 55, 56, 63, 64, 65, 119, 120, 1_000, 70_000]) {
    const bytes = bytesOf(length);
    const hash = new Sha256();
    for (let at = 0, step = 1; at < length; at += step, step = (step * 7) % 131) {
      hash.update(bytes.subarray(at, at + step));
    }
    assert.equal(toHex(hash.finish()), toHex(digestOf(bytes)), `${length}`);
  }
});

test("paths that leave the directory or are malformed are refused", () => {
  for (const path of ["a", "maps/ice.json", "ä/…", ".../..a", "x".repeat(255)]) {
    assert.equal(checkPath(Buffer.from(path)), path);
  }
  for (const path of ["", "/a", "a/", "a//b", "..", "../a", "a/../b", "./a", "C:a", "a\\b", "a\0", "a\n", "a\u0085", "x".repeat(256)]) {
    assert.equal(checkPath(Buffer.from(path)), undefined, path);
  }
  assert.equal(checkPath(Uint8Array.of(0x61, 0xff)), undefined);
});

for (const protocol of ["raknet", "game"]) {
  test(`${protocol}: all files arrive in the order of their paths, and the connection can carry another transfer`, async () => {
    const [from, to] = await openPair(protocol);
    const notices = [];
    const progress = [];
    const sending = sendFiles(from.connection, filesOf(TREE), { onProgress: (sent, total) => notices.push([sent, total]) });
    const transfer = receiveFiles(to.connection, { onProgress: (now) => progress.push(now) });
    const tree = await readAll(transfer);
    await sending;
    assert.deepEqual(tree, TREE);
    assert.deepEqual(Object.keys(tree), Object.keys(TREE));
    const bytes = Object.values(TREE).reduce((sum, { length }) => sum + length, 0);
    // An empty file needs no data.
    const done = { files: 5, bytes, received: bytes, unchanged: 1, totalFiles: 5, totalBytes: bytes };
    assert.deepEqual([transfer.progress, progress.at(-1), notices.at(-1)], [done, done, [bytes, bytes]]);
    assert.ok(progress.every((now, index) => index === 0 || now.bytes >= progress[index - 1].bytes));
    // A second transfer on the same connection, with no files.
    const again = sendFiles(from.connection, []);
    assert.deepEqual(await readAll(receiveFiles(to.connection)), {});
    await again;
  });
}

test("game: files pass over a real connection", async (t) => {
  const { address } = await startEcho(t, "--protocol", "game");
  const connection = await connect(`udp://${address}`, { protocol: "game", timeoutMs: LIMIT_MS });
  // The server echoes requests and replies, so the connection is its own peer.
  const sending = sendFiles(connection, filesOf(TREE), { chunkBytes: 4_096 });
  assert.deepEqual(await readAll(receiveFiles(connection, { timeoutMs: LIMIT_MS })), TREE);
  await sending;
  await connection.close();
});

/** Creates a directory with these files for the command-line tool. */
function directoryOf(t, tree) {
  const folder = folderOf(t);
  for (const [path, bytes] of Object.entries(tree)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), bytes);
  }
  return folder;
}

test("files are received from `rakwire push`", async (t) => {
  const { address } = await startListening(t, "push", directoryOf(t, TREE));
  const connection = await connect(`udp://${address}`, { timeoutMs: LIMIT_MS });
  assert.deepEqual(await readAll(receiveFiles(connection, { timeoutMs: LIMIT_MS })), TREE);
  await connection.close();
});

test("files are sent to `rakwire pull`", async (t) => {
  // The tool requests a patch for a changed file, which the TypeScript sender does not support.
  const folder = directoryOf(t, { "maps/ice.json": bytesOf(850, 7) });
  const { address } = await startListening(t, "pull", folder);
  const connection = await connect(`udp://${address}`, { timeoutMs: LIMIT_MS });
  await sendFiles(connection, filesOf(TREE));
  await connection.close();
  for (const [path, bytes] of Object.entries(TREE)) {
    assert.deepEqual(new Uint8Array(readFileSync(join(folder, path))), bytes, path);
  }
});

test("the example in files.md runs", async (t) => {
  const { address } = await startListening(t, "push", directoryOf(t, TREE));
  const page = readFileSync(new URL("files.md", import.meta.url), "utf8");
  const [, code] = /^```js\n(.*?)^```$/ms.exec(page);
  const source = code.replace(/from "(rakwire[^"]*)"/g, (_, entry) => `from ${JSON.stringify(import.meta.resolve(entry))}`);
  const { download } = await import(`data:text/javascript,${encodeURIComponent(source)}`);
  const blobs = await download(`udp://${address}`, () => undefined);
  assert.deepEqual([...blobs.keys()], Object.keys(TREE));
  assert.equal(blobs.get("maps/big.bin").size, 700_000);
});

for (const worker of [false, true]) {
  test(`a page receives files through a relay${worker ? ", in a worker" : ""}`, async (t) => {
    const { address } = await startListening(t, "push", directoryOf(t, TREE));
    const { page, url } = await openWith(t, { files: address });
    const found = await page.evaluate(
      async ([relay, worker]) => {
        const [{ connect }, { receiveFiles }, workers] = await Promise.all(["index", "files", "worker"].map((name) => import(`/dist/${name}.js`)));
        const connection = await connect(relay, { target: "files", timeoutMs: 60_000, ...(worker && { worker: workers.worker }) });
        const found = [];
        for await (const { path, stream } of receiveFiles(connection, { timeoutMs: 60_000 })) {
          const blob = await new Response(stream).blob();
          const digest = await crypto.subtle.digest("SHA-256", await blob.arrayBuffer());
          found.push([path, blob.size, [...new Uint8Array(digest)]]);
        }
        await connection.close();
        return found;
      },
      [url, worker],
    );
    assert.deepEqual(found, Object.entries(TREE).map(([path, bytes]) => [path, bytes.length, [...digestOf(bytes)]]));
  });
}

test("a transfer resumes after present bytes, skips unchanged files and restarts files that differ", async () => {
  const [from, to] = await openPair("raknet");
  const big = TREE["maps/big.bin"];
  const present = {
    "empty": new Uint8Array(0),
    // The present bytes are: a blob with the beginning; the whole file and more; another version of the same length;
    // and the beginning of another version.
    "maps/big.bin": new Blob([big.subarray(0, 300_000)]),
    "maps/ice.json": new Uint8Array([...TREE["maps/ice.json"], 1, 2, 3]),
    "\uff21": new Uint8Array(10),
    "\u{1f9ca}": new Uint8Array(5),
  };
  const sending = sendFiles(from.connection, filesOf(TREE));
  const transfer = receiveFiles(to.connection, { present: async ({ path }) => present[path] });
  const found = [];
  for await (const file of transfer) {
    const bytes = await file.bytes().catch(({ code }) => code);
    found.push([file.path, file.offset, bytes.length ?? bytes]);
    if (typeof bytes !== "string") {
      assert.deepEqual(bytes, TREE[file.path].subarray(file.offset));
    }
  }
  await sending;
  assert.deepEqual(found, [
    ["empty", 0, 0],
    ["maps/big.bin", 300_000, 400_000],
    ["maps/ice.json", 900, 0],
    ["\uff21", 0, 10],
    ["\u{1f9ca}", 5, "file-changed".length],
    ["\u{1f9ca}", 0, 11],
  ]);
  const { files, bytes, totalBytes, received, unchanged } = transfer.progress;
  assert.deepEqual({ files, bytes, received, unchanged }, { files: 5, bytes: totalBytes, received: 400_000 + 10 + 6 + 11, unchanged: 2 });
});

test("an unread file is not fetched and does not block other files", async () => {
  const [from, to] = await openPair("raknet");
  const tree = Object.fromEntries(Array.from({ length: 150 }, (_, index) => [String(index).padStart(3, "0"), bytesOf(5_000, index)]));
  const sending = sendFiles(from.connection, filesOf(tree), { chunkBytes: 1_000 });
  const transfer = receiveFiles(to.connection, { window: 3 });
  const left = [];
  let count = 0;
  for await (const { path, stream, bytes } of transfer) {
    count += 1;
    if (Number(path) % 3 === 0) {
      assert.deepEqual(await bytes(), tree[path]);
    } else if (Number(path) % 3 === 1) {
      left.push(stream);
    } else {
      await stream.cancel();
    }
  }
  await sending;
  assert.equal(count, 150);
  assert.equal(transfer.progress.files, 50);
  assert.ok(transfer.progress.received < 600_000, `${transfer.progress.received}`);
  await assert.rejects(left[0].getReader().read(), ended("cancelled", false));
});

test("a receiver that does not read keeps at most `window` requests open", async () => {
  const [from, to] = await openPair("raknet");
  const sending = sendFiles(from.connection, filesOf(TREE), { chunkBytes: 10_000 });
  const transfer = receiveFiles(to.connection, { window: 4 });
  const files = transfer[Symbol.asyncIterator]();
  await files.next();
  const { value: big } = await files.next();
  await until(() => transfer.progress.received === 40_000, "the receiver has filled its window");
  for (let turn = 0; turn < 20; turn++) {
    await settle();
  }
  assert.equal(transfer.progress.received, 40_000);
  const reader = big.stream.getReader();
  assert.deepEqual((await reader.read()).value, TREE["maps/big.bin"].subarray(0, 10_000));
  await until(() => transfer.progress.received === 50_000, "the receiver has fetched another chunk");
  await files.return();
  await assert.rejects(sending, ended("cancelled", true));
});

test("a transfer does not time out while the application is slow to read", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { transfer } = await maliciousSender(replies(), { window: 2, timeoutMs: 1_000 });
  for (let turn = 0; turn < 20; turn++) {
    await settle();
  }
  assert.equal(transfer.progress.received, 800);
  t.mock.timers.tick(10_000);
  assert.deepEqual(await readAll(transfer), { a: CONTENT });
});

/** Fake time in milliseconds, advanced by the test. */
function mockTime(t) {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  let now = 1_000;
  t.mock.method(performance, "now", () => now);
  return async (ms) => {
    now += ms;
    t.mock.timers.tick(ms);
    await settle();
  };
}

for (const [who, sent, received] of [["a sender", { maxBytesPerSecond: 100_000 }, {}], ["a receiver", {}, { maxBytesPerSecond: 100_000 }]]) {
  test(`${who} does not exceed its rate limit`, async (t) => {
    const [from, to] = await openPair("raknet");
    const pass = mockTime(t);
    const sending = sendFiles(from.connection, [{ path: "big", content: bytesOf(200_000) }], sent);
    const transfer = receiveFiles(to.connection, { timeoutMs: 2_000, ...received });
    let isDone = false;
    const reading = readAll(transfer).then(() => (isDone = true));
    let passed = 0;
    for (; !isDone && passed < 60_000; passed += 50) {
      // At this rate a chunk takes 0.25 s, and the pacer allows a burst of 0.1 s.
      const { received: bytes } = transfer.progress;
      assert.ok(bytes <= 100 * passed + 25_000 + 10_000, `${bytes} bytes after ${passed} ms`);
      await pass(50);
    }
    await Promise.all([reading, sending]);
    assert.ok(passed >= 1_600 && passed < 4_000, `${passed} ms`);
  });
}

test("a cancelled transfer sends no reply that the rate limit had delayed", async (t) => {
  const [from, to] = await openPair("raknet");
  const pass = mockTime(t);
  const files = [{ path: "big", content: bytesOf(100_000) }];
  const sending = assert.rejects(sendFiles(from.connection, files, { maxBytesPerSecond: 10_000 }), ended("cancelled", true));
  const transfer = receiveFiles(to.connection);
  const reading = assert.rejects(readAll(transfer), ended("cancelled", false));
  for (let steps = 0; transfer.progress.received === 0; steps++) {
    assert.ok(steps < 1_000, "the receiver has received nothing");
    await pass(50);
  }
  transfer.cancel();
  await Promise.all([sending, reading]);
  const sent = t.mock.method(from.peer, "send");
  await pass(60_000);
  assert.equal(sent.mock.callCount(), 0);
});

test("a transfer without progress times out, and a transfer with progress does not", async (t) => {
  const fake = await openFake("raknet");
  const notices = [];
  fake.peer.send = (bytes) => void notices.push(decodeReply(bytes));
  const pass = mockTime(t);
  let result;
  void sendFiles(fake.connection, filesOf(TREE), { timeoutMs: 10_000 }).catch((error) => (result = error));
  const ask = async (request) => {
    const replies = notices.length;
    fake.peer.events.push((events) => events.onMessage({ bytes: encodeRequest(request), reliability: "reliable", channel: 0 }));
    fake.wake();
    for (let turn = 0; notices.length === replies; turn++) {
      assert.ok(turn < 1_000, "the sender has not replied");
      await settle();
    }
  };
  await ask({ kind: "list", number: 1, first: 0, count: 10 });
  for (let number = 2; number < 8; number++) {
    await pass(9_999);
    assert.equal(result, undefined);
    await ask({ kind: "read", number, file: 1, offset: 0, length: 1_000 });
  }
  await pass(9_999);
  // An invalid message is not progress.
  fake.peer.events.push((events) => events.onMessage({ bytes: hex("80"), reliability: "reliable", channel: 0 }));
  fake.wake();
  await settle();
  await pass(1);
  assert.ok(ended("timed-out", false)(result));
  assert.deepEqual(notices.at(-1), { kind: "failed", code: codeOfReason("timed-out") });
});

test("a sender that cannot send replies times out after two minutes by default", async (t) => {
  const { connection, peer, wake } = await openFake("raknet");
  peer.room = 0;
  const pass = mockTime(t);
  let result;
  void sendFiles(connection, []).catch((error) => (result = error));
  peer.events.push((events) => events.onMessage({ bytes: encodeRequest({ kind: "list", number: 1, first: 0, count: 10 }), reliability: "reliable", channel: 0 }));
  wake();
  await settle();
  await pass(119_999);
  assert.equal(result, undefined);
  await pass(1);
  assert.ok(ended("timed-out", false)(result));
});

test("a pause for the rate limit does not count as missing progress", async (t) => {
  const [from, to] = await openPair("raknet");
  const pass = mockTime(t);
  const sending = sendFiles(from.connection, [{ path: "big", content: bytesOf(2_000) }], { maxBytesPerSecond: 100, timeoutMs: 1_000 });
  let isDone = false;
  const reading = readAll(receiveFiles(to.connection)).then(() => (isDone = true));
  for (let passed = 0; !isDone; passed += 50) {
    assert.ok(passed < 60_000, "the transfer has not completed within 60 s");
    await pass(50);
  }
  await Promise.all([reading, sending]);
});

test("either side can cancel a transfer and its peer is notified, and closing the connection fails both sides", async () => {
  const [from, to] = await openPair("raknet");
  const controllers = [new AbortController(), new AbortController()];
  for (const [index, { signal }] of controllers.entries()) {
    const options = [{ signal: index === 0 ? signal : undefined }, { signal: index === 1 ? signal : undefined }];
    const sending = sendFiles(from.connection, filesOf(TREE), options[0]);
    const transfer = receiveFiles(to.connection, options[1]);
    await until(() => transfer.progress.received > 0, "the receiver has received a part of the files");
    controllers[index].abort(new Error("enough"));
    const receiving = readAll(transfer);
    const [own, other] = index === 0 ? [sending, receiving] : [receiving, sending];
    await assert.rejects(own, /enough/);
    await assert.rejects(other, ended("cancelled", true));
  }
  const sending = sendFiles(from.connection, filesOf(TREE));
  const files = receiveFiles(to.connection)[Symbol.asyncIterator]();
  const { value } = await files.next();
  from.end();
  to.end();
  await assert.rejects(sending, fails("not-connected", /ended/));
  await assert.rejects(files.next(), fails("not-connected", /ended/));
  await assert.rejects(value.bytes(), fails("not-connected", /ended/));
});

/** A malicious sender that answers the requests of the receiver with `reply`. */
async function maliciousSender(reply, options) {
  const fake = await openFake("raknet");
  const notices = [];
  fake.peer.send = (bytes) => {
    const request = decodeRequest(bytes);
    notices.push(request);
    for (const answer of [reply(request) ?? []].flat()) {
      fake.peer.events.push((events) => events.onMessage({ bytes: answer instanceof Uint8Array ? answer : encodeReply(answer), reliability: "reliable", channel: 0 }));
    }
    queueMicrotask(fake.wake);
  };
  return { transfer: receiveFiles(fake.connection, options), notices, ...fake };
}

const CONTENT = bytesOf(900);
const honest = { kind: "page", files: 1, bytes: 900, chunk: 400, window: 4, first: 0, entries: [{ path: Buffer.from("a"), size: 900, digest: digestOf(CONTENT) }] };

/** The replies of an honest sender of one file, with modifications by the test. */
const replies = (page = {}, data = {}) => (request) => {
  if (request.kind === "list") {
    return { ...honest, number: request.number, ...page };
  }
  if (request.kind === "read") {
    return { kind: "data", number: request.number, bytes: CONTENT.subarray(request.offset, request.offset + request.length), ...data };
  }
  return undefined;
};

test("invalid replies are detected and reported to the sender", async () => {
  assert.deepEqual(await readAll((await maliciousSender(replies())).transfer), { a: CONTENT });
  const entry = (change) => ({ entries: [{ ...honest.entries[0], ...change }] });
  const two = (a, b) => ({ files: 2, bytes: 1_800, entries: [{ ...honest.entries[0], path: Buffer.from(a) }, { ...honest.entries[0], path: Buffer.from(b) }] });
  const lies = [
    ["bad-digest", replies(entry({ digest: new Uint8Array(32) }))],
    ["bad-digest", replies({}, { bytes: new Uint8Array(400) }), { chunkBytes: 400 }, 900 % 400 !== 0],
    ["bad-message", replies({}, { bytes: new Uint8Array(3) })],
    ["bad-message", replies({}, { bytes: new Uint8Array(401) })],
    ["bad-message", replies({ chunk: 0 })],
    ["bad-message", replies({ window: 0 })],
    ["bad-message", () => hex("81")],
    ["bad-message", () => hex("8109")],
    ["bad-manifest", replies({ entries: [] })],
    ["bad-manifest", replies({ first: 1 })],
    ["bad-manifest", replies({ bytes: 901 })],
    ["bad-manifest", replies({ bytes: 899 })],
    ["bad-manifest", replies(two("b", "a"))],
    ["bad-manifest", replies(two("a", "a"))],
    ["bad-manifest", replies({ ...two("a", "b"), files: 1 })],
    ...["../a", "/a", "a/./b", "a\\b", "", "C:"].map((path) => ["bad-path", replies(entry({ path: Buffer.from(path) }))]),
    ["too-many-files", replies({ files: 0xffff_ffff })],
    ["too-many-bytes", replies({ bytes: Number.MAX_SAFE_INTEGER })],
    ["too-many-bytes", replies({ ...entry({ size: 2 ** 62 }), bytes: 2 ** 62 })],
    ["file-too-long", replies(), { maxFileBytes: 899 }],
    ["too-many-bytes", replies(), { maxBytes: 899 }],
    ["too-many-files", replies(), { maxFiles: 0 }],
    ["timed-out", () => undefined, { timeoutMs: 20 }],
    ["timed-out", (request) => (request.kind === "list" ? replies()(request) : undefined), { timeoutMs: 20 }],
    ["storage", replies(), { present: () => Promise.reject(new Error("no disk")) }],
  ];
  for (const [reason, reply, options, isShort] of lies) {
    const { transfer, notices } = await maliciousSender(reply, options);
    const expected = isShort ? "bad-message" : reason;
    await assert.rejects(readAll(transfer), ended(expected, false), expected);
    assert.deepEqual(notices.at(-1), { kind: "failed", code: codeOfReason(expected) });
  }
});

test("too many entries fail a transfer, and unrequested replies are ignored", async () => {
  const entries = Array.from({ length: 65 }, (_, index) => ({ path: Buffer.from(String(index).padStart(2, "0")), size: 0, digest: digestOf("") }));
  const flood = await maliciousSender(replies({ files: 65, bytes: 0, entries }));
  await assert.rejects(readAll(flood.transfer), ended("bad-message", false));
  const stray = { kind: "data", number: 12, bytes: new Uint8Array(1_000_000) };
  const { transfer, notices } = await maliciousSender((request) => {
    const reply = replies()(request);
    return reply && [stray, reply, reply, { ...honest, number: request.number + 1 }];
  });
  assert.deepEqual(await readAll(transfer), { a: CONTENT });
  assert.deepEqual([transfer.progress.received, notices.at(-1)], [900, { kind: "done" }]);
  // A sender that cancels the transfer sends the reason.
  const other = await maliciousSender(() => ({ kind: "failed", code: 1 }));
  await assert.rejects(readAll(other.transfer), ended("forbidden", true));
  assert.equal(other.notices.length, 1);
});

/** A receiver that sends invalid requests. */
async function greedyReceiver(...requests) {
  const fake = await openFake("raknet");
  const notices = [];
  fake.peer.send = (bytes) => void notices.push(decodeReply(bytes));
  const sending = sendFiles(fake.connection, filesOf(TREE), { window: 4, chunkBytes: 1_000 });
  const result = sending.then(() => "done", (error) => error);
  fake.peer.events.push(...requests.map((request) => (events) => events.onMessage({ bytes: request instanceof Uint8Array ? request : encodeRequest(request), reliability: "reliable", channel: 0 })));
  fake.wake();
  return { result, notices, ...fake };
}

test("out-of-range requests and too many open requests fail the transfer, and malformed requests are ignored", async () => {
  const read = { kind: "read", number: 1, file: 1, offset: 0, length: 1_000 };
  const refused = [
    ["unknown", { ...read, file: 5 }],
    ["unknown", { ...read, length: 0 }],
    ["unknown", { ...read, length: 1_001 }],
    ["unknown", { ...read, offset: 699_001 }],
    ["unknown", { ...read, offset: 2 ** 62 }],
    ["unknown", { kind: "list", number: 1, first: 6, count: 1 }],
    ["unknown", { kind: "list", number: 1, first: 0, count: 0 }],
    ["too-many-requests", ...Array(6).fill(read)],
  ];
  for (const [reason, ...requests] of refused) {
    const { result, notices } = await greedyReceiver(...requests);
    assert.ok(ended(reason, false)(await result), reason);
    assert.deepEqual(notices.at(-1), { kind: "failed", code: codeOfReason(reason) });
    assert.ok(notices.length <= 6);
  }
  const { result, notices } = await greedyReceiver(hex("80"), hex("8009"), read, { kind: "failed", code: 200 });
  assert.ok(ended("other", true)(await result));
  assert.deepEqual(notices, []);
});

test("invalid files and options fail immediately", async () => {
  const { connection } = await openFake("raknet");
  for (const path of ["../a", "", "a\\b"]) {
    await assert.rejects(sendFiles(connection, [{ path, content: new Uint8Array(1) }]), fails("bad-option", /path/));
  }
  const file = { path: "a", content: new Uint8Array(1) };
  await assert.rejects(sendFiles(connection, [file, file]), fails("bad-option", /same path/));
  await assert.rejects(sendFiles(connection, [], { chunkBytes: 100 }), fails("bad-option", /chunkBytes/));
  await assert.rejects(sendFiles(connection, [], { timeoutMs: 0 }), fails("bad-option", /timeoutMs/));
  await assert.rejects(sendFiles(connection, [], { maxBytesPerSecond: 0 }), fails("bad-option", /maxBytesPerSecond/));
  assert.throws(() => receiveFiles(connection, { maxBytesPerSecond: 0.5 }), fails("bad-option", /maxBytesPerSecond/));
  assert.throws(() => receiveFiles(connection, { window: 0 }), fails("bad-option", /window/));
  assert.throws(() => receiveFiles(connection, { maxBytes: -1 }), fails("bad-option", /maxBytes/));
  assert.throws(() => receiveFiles(connection, { signal: AbortSignal.abort(new Error("enough")) }), /enough/);
  const transfer = receiveFiles(connection);
  assert.throws(() => receiveFiles(connection), fails("bad-option", /another plugin/));
  transfer.cancel();
});
