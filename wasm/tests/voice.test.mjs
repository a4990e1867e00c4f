// Voice without audio devices: wire format, jitter buffers, recipients, malicious and flooding peers, and audio
// processing.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { openLoudspeaker, openMicrophone, Voice } from "rakwire/voice";

import { FRAME_SAMPLES, Framer, JitterBuffer, mixDown, Mixer, SAMPLE_RATE } from "../dist/voice/sound.js";
import { Concealer } from "../dist/voice/loudspeaker.js";
import { decodeFrame, encodeFrame } from "../dist/voice/voice.js";
import { openFake, openPair } from "./fake-peer.mjs";
import { codeOf, fails } from "./support.mjs";

const VECTORS = JSON.parse(readFileSync(new URL("voice.json", import.meta.url), "utf8"));
const ID = 0x90;
const hex = (text) => Uint8Array.from(Buffer.from(text, "hex"));
const settle = () => new Promise((resolve) => setTimeout(resolve));
const energy = (samples) => samples.reduce((sum, sample) => sum + sample * sample, 0) / samples.length;
const frame = (number, bytes = [1], { isFirst = false, isLast = false } = {}) => encodeFrame(ID, { number, isFirst, isLast, bytes });

/** Pseudorandom integers below a limit, the same in each run. */
function numbers(seed) {
  let state = seed;
  return (limit) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * limit);
  };
}

/** Creates a voice with a fake clock, and a peer that sends messages chosen by the test. */
async function listener() {
  const fake = await openFake("raknet");
  const clock = { ms: 0 };
  const voice = new Voice({ id: ID }, () => clock.ms);
  voice.join(fake.connection);
  await settle();
  const say = (...all) => {
    const message = (bytes) => ({ bytes, reliability: "unreliable-sequenced", channel: 31 });
    fake.peer.events.push(...all.map((bytes) => (callbacks) => callbacks.onMessage(message(bytes))));
    fake.wake();
  };
  return { ...fake, voice, clock, say };
}

test("messages encode to the test vectors and decode from them, and malformed messages do not decode", () => {
  assert.equal(VECTORS.messages.length, 4);
  for (const { hex: bytes, number, first: isFirst, last: isLast, frame } of VECTORS.messages) {
    const message = { number, isFirst, isLast, bytes: hex(frame) };
    assert.equal(Buffer.from(encodeFrame(hex(bytes)[0], message)).toString("hex"), bytes);
    assert.deepEqual(decodeFrame(hex(bytes)), message);
  }
  for (const none of [...VECTORS.malformed, `90000000${"00".repeat(509)}`]) {
    assert.equal(decodeFrame(hex(none)), undefined, none);
  }
});

for (const { name, frames, steps, stats, delay } of VECTORS.traces) {
  test(`a jitter buffer plays as in the test vectors: ${name}`, () => {
    const buffer = new JitterBuffer({ frameTime: 20_000, maxDelay: 200_000, frames });
    const step = (text) => {
      const [, time, kind, what] = /^(\d+)([+=])(.*)$/.exec(text);
      if (kind === "+") {
        const [number, flags = 0] = what.split(".").map(Number);
        buffer.insert(Number(time), { number, isFirst: (flags & 1) !== 0, isLast: (flags & 2) !== 0, bytes: Uint8Array.of(number >> 8, number) });
        return text;
      }
      const playback = buffer.play(Number(time));
      return `${time}=${playback.kind === "frame" ? (playback.bytes[0] << 8) | playback.bytes[1] : playback.kind[0]}`;
    };
    assert.deepEqual(steps.map((line) => line.split(" ").map(step).join(" ")), steps);
    const { received, played, concealed, late, skipped } = buffer.stats();
    assert.deepEqual([received, played, concealed, late, skipped], stats);
    assert.equal(Math.floor(buffer.delay), delay);
  });
}

test("invalid frames are counted and add no speaker", async () => {
  const { voice, say, connection } = await listener();
  say(...[[ID], [ID, 0, 0, 0], [ID, 4, 0, 0, 1], [...frame(0, new Uint8Array(509))], Array(600).fill(ID)].map((bytes) => Uint8Array.from(bytes)));
  assert.deepEqual([voice.stats().malformed, voice.speakers()], [5, []]);
  say(frame(7));
  assert.deepEqual([voice.stats().malformed, voice.speakers()], [5, [connection]]);
});

test("for any arrivals, each call plays at most one frame and the delay is limited", async () => {
  const { voice, clock, say, connection } = await listener();
  const below = numbers(1);
  for (let round = 0; round < 2_000; round++) {
    const message = frame(below(4) === 0 ? below(65_536) : round & 0xffff, Array.from({ length: below(4) }, () => below(256)));
    message[1] = below(5);
    say(...Array(below(8)).fill(message));
    clock.ms += below(40);
    const playback = voice.play(connection);
    assert.ok(playback.kind !== "frame" || (playback.bytes.length > 0 && playback.bytes.length < 4));
    assert.ok(voice.delayMs(connection) <= 200);
  }
  const { received, played, late, skipped } = voice.speakerStats(connection);
  assert.ok(played > 0 && played + late + skipped <= received, `${played} of ${received}`);
});

test("of a flood of frames, at most one full buffer is played", async () => {
  const { voice, clock, say, connection } = await listener();
  say(...Array.from({ length: 5_000 }, (_, number) => frame(number)));
  clock.ms += 1_000;
  let played = 0;
  while (voice.speakers().length > 0) {
    clock.ms += 20;
    played += voice.play(connection).kind === "frame" ? 1 : 0;
  }
  assert.ok(played > 0 && played <= 16, `${played}`);
  assert.equal(voice.speakerStats(connection).received, 5_000);
});

test("a talk spurt marks its first and last frame, and frame numbers wrap from 65,535 to 0", async () => {
  const { voice, peer } = await listener();
  const sent = [];
  peer.send = (bytes, delivery) => sent.push([...bytes, delivery]);
  voice.talk(Uint8Array.of(5));
  voice.talk(Uint8Array.of(6));
  voice.talkLast(Uint8Array.of(7));
  voice.talkLast(Uint8Array.of(8));
  assert.deepEqual(sent.map((message) => message.slice(0, 5)), [[ID, 1, 0, 0, 5], [ID, 0, 0, 1, 6], [ID, 2, 0, 2, 7], [ID, 3, 0, 3, 8]]);
  // Unreliable sequenced, on channel 31.
  assert.ok(sent.every((message) => (message[5] & 7) === 1 && message[5] >> 5 === 31), String(sent));
  for (let number = 4; number <= 0xffff; number++) {
    voice.talk(Uint8Array.of(1));
  }
  sent.length = 0;
  voice.talk(Uint8Array.of(9));
  assert.deepEqual(sent[0].slice(0, 5), [ID, 0, 0, 0, 9]);
});

test("frames reach only intended recipients and none while muted, and a closed connection is removed", async () => {
  const [here, there] = await openPair("raknet");
  const [from, to] = [new Voice({ id: ID }), new Voice({ id: ID })];
  from.join(here.connection);
  to.join(there.connection);
  await settle();
  const received = () => to.speakerStats(there.connection).received;
  const say = async () => {
    from.talk(Uint8Array.of(1));
    await settle();
    return received();
  };
  assert.equal(await say(), 1);
  assert.ok(from.setRecipient(here.connection, false) && !from.setRecipient(there.connection, false));
  assert.equal(await say(), 1);
  from.setRecipient(here.connection, true);
  assert.equal(await say(), 2);
  from.isMuted = true;
  assert.equal(await say(), 2);
  from.isMuted = false;
  assert.ok(to.mute(there.connection, true) && !to.mute(here.connection, true));
  assert.equal(await say(), 0);
  to.mute(there.connection, false);
  assert.equal(await say(), 1);
  assert.deepEqual(to.speakers(), [there.connection]);
  there.end();
  await there.connection.closed;
  await settle();
  assert.deepEqual([to.has(there.connection), to.speakers(), to.speakerStats(there.connection)], [false, [], undefined]);
  assert.deepEqual(to.play(there.connection), { kind: "silence" });
});

test("frames that a connection does not accept are dropped, and invalid frames and options throw", async () => {
  const { voice, peer, connection, end } = await listener();
  peer.room = 0;
  voice.talk(Uint8Array.of(1));
  assert.deepEqual(voice.stats(), { sent: 0, dropped: 1, malformed: 0 });
  peer.room = Infinity;
  voice.talk(Uint8Array.of(1));
  assert.deepEqual(voice.stats(), { sent: 1, dropped: 1, malformed: 0 });
  assert.equal(codeOf(() => voice.talk(new Uint8Array(0))), "empty-message");
  assert.equal(codeOf(() => voice.talk(new Uint8Array(509))), "too-long");
  voice.join(connection);
  assert.throws(() => new Voice({ id: ID }).join(connection), fails("bad-option", /another plugin/));
  end();
  voice.talk(Uint8Array.of(1));
  assert.deepEqual(voice.stats(), { sent: 1, dropped: 2, malformed: 0 });
  for (const options of [{ id: 133 }, { id: 256 }, { id: ID, channel: 32 }, { id: ID, maxDelayMs: 301 }]) {
    assert.equal(codeOf(() => new Voice(options)), "bad-option");
  }
});

test("a protocol without sequenced messages is reported and not used", async () => {
  const { connection } = await openFake("game");
  const voice = new Voice({ id: ID });
  voice.join(connection);
  assert.equal(codeOf(() => voice.talk(Uint8Array.of(1))), "bad-option");
});

test("audio blocks of any length become frames of 960 samples", () => {
  const below = numbers(2);
  const framer = new Framer(960);
  const said = Float32Array.from({ length: 48_000 }, (_, at) => at);
  const frames = [];
  for (let at = 0; at < said.length; ) {
    const length = below(2_500);
    frames.push(...framer.push(said.subarray(at, at + length)));
    at += length;
  }
  assert.deepEqual(frames.flatMap((samples) => [...samples]), [...said]);
  assert.ok(frames.every(({ length }) => length === 960));
  assert.deepEqual([...mixDown([Float32Array.of(1, 0), Float32Array.of(0, 0.5)])], [0.5, 0.25]);
});

/** Generates frames of a vowel-like sound. */
function vowel(count, frequency = 210) {
  const sound = (at) => [1, 2, 3].reduce((sum, overtone) => sum + Math.sin((2 * Math.PI * frequency * overtone * at) / SAMPLE_RATE) / overtone, 0) / 5;
  return Array.from({ length: count }, (_, number) => Float32Array.from({ length: FRAME_SAMPLES }, (_, at) => sound(number * FRAME_SAMPLES + at)));
}

test("concealment of missing frames continues the voice and fades out", () => {
  for (const frequency of [80, 150, 210, 390]) {
    const concealer = new Concealer();
    const said = vowel(12, frequency);
    said.slice(0, 6).forEach((samples) => concealer.take(samples.slice()));
    const madeUp = concealer.conceal();
    const products = madeUp.map((sample, at) => sample * said[6][at]);
    const likeness = products.reduce((a, b) => a + b) / FRAME_SAMPLES / Math.sqrt(energy(madeUp) * energy(said[6]));
    assert.ok(likeness > 0.9, `${likeness} at ${frequency} Hz`);
    const gap = [madeUp, ...Array.from({ length: 4 }, () => concealer.conceal())];
    gap.slice(1).forEach((samples, at) => assert.ok(energy(samples) < energy(gap[at])));
    assert.ok(energy(gap[4]) < energy(madeUp) / 100 && energy(madeUp) > energy(said[6]) / 5);
    // The next frame is cross-faded with the concealed sound, and then equals the original.
    const next = concealer.take(said[11].slice());
    assert.ok(Math.abs(next[0] - gap[4].at(-1)) < 0.05);
    assert.deepEqual(next.slice(240), said[11].slice(240));
  }
  assert.ok(new Concealer().conceal().every((sample) => sample === 0), "concealment without an earlier frame must be silent");
});

test("the mixer delays speakers by one frame, adds them, and buffers at most three frames of each", () => {
  const mixer = new Mixer();
  const render = (blocks) => {
    const output = new Float32Array(128 * blocks);
    let due = 0;
    for (let at = 0; at < output.length; at += 128) {
      due += mixer.mixInto(output.subarray(at, at + 128));
    }
    return { output, due };
  };
  assert.equal(render(75).due, 10);
  mixer.push(1, new Float32Array(960).fill(0.5));
  mixer.push(2, new Float32Array(960).fill(0.25));
  const { output } = render(24);
  // Playback starts at the end of the block of 128 samples in which the delay of one frame passes.
  assert.ok(output.subarray(0, 1_024).every((sample) => sample === 0));
  assert.ok(output.subarray(1_024, 1_984).every((sample) => sample === 0.75));
  assert.ok(output.subarray(1_984).every((sample) => sample === 0));
  for (let number = 0; number < 100; number++) {
    mixer.push(1, new Float32Array(960).fill(number));
  }
  const flood = render(75).output.filter((sample) => sample !== 0);
  assert.deepEqual([...new Set(flood)], [97, 98, 99]);
  assert.equal(flood.length, 3 * 960);
});

test("missing audio features are reported as voice-unavailable", async () => {
  const voice = new Voice({ id: ID });
  await assert.rejects(openMicrophone(voice), fails("voice-unavailable", /AudioEncoder/));
  await assert.rejects(openLoudspeaker(voice), fails("voice-unavailable", /AudioDecoder/));
  await assert.rejects(openMicrophone(voice, { bitsPerSecond: 70_000 }), fails("bad-option", /bitsPerSecond/));
});
