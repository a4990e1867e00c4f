// Voice in Chromium with a fake microphone that beeps every half second: through a relay, a server, WebCodecs and audio
// worklets.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { openWith } from "./package-page.mjs";
import { LIMIT_MS, startEcho, startPluginExample, until } from "./support.mjs";

const FAKE_DEVICE = "--use-fake-device-for-media-stream";
const FAKE_MICROPHONE = [FAKE_DEVICE, "--use-fake-ui-for-media-stream"];

/** Runs in a page: connects, joins a voice, and stores functions for later evaluations in `call`. */
async function join(page, url, options = {}) {
  await page.evaluate(
    async ([url, { microphone, loudspeaker }]) => {
      const [{ connect }, { openLoudspeaker, openMicrophone, Voice }] = await Promise.all(["raknet", "voice"].map((name) => import(`/dist/${name}.js`)));
      const connection = await connect(url, { target: "voice", timeoutMs: 60_000 });
      const voice = new Voice({ id: 0x90 });
      voice.join(connection);
      const context = new AudioContext({ sampleRate: 48_000 });
      const analyser = new AnalyserNode(context, { fftSize: 1024 });
      analyser.connect(context.destination);
      await context.resume();
      const samples = new Float32Array(analyser.fftSize);
      globalThis.call = {
        connection,
        voice,
        /** Returns the energy of the current output. */
        energy() {
          analyser.getFloatTimeDomainData(samples);
          return samples.reduce((sum, sample) => sum + sample * sample, 0) / samples.length;
        },
        /** Waits until a condition holds. Checks it often enough to miss no beep. */
        async until(condition, what) {
          for (const end = Date.now() + 60_000; !condition(); await new Promise((resolve) => setTimeout(resolve, 10))) {
            if (Date.now() > end) {
              throw new Error(`timed out after 60 s while waiting until ${what}`);
            }
          }
        },
        /** Replaces each received frame with the result of `change`; `undefined` drops the frame. */
        onArrival(change) {
          const { queue } = connection;
          const { taker } = queue;
          queue.taker = (message) => {
            const bytes = message.bytes[0] === 0x90 ? change(message.bytes) : message.bytes;
            return bytes === undefined || taker({ ...message, bytes });
          };
          return () => (queue.taker = taker);
        },
        loudspeaker: await openLoudspeaker(voice, { destination: analyser, ...loudspeaker }),
        microphone: await openMicrophone(voice, microphone),
      };
    },
    [url, options],
  );
}

/** A page that plays its own sound through an echo server. */
async function hearingItself(t, options, headers) {
  const echo = await startEcho(t);
  const { page, url } = await openWith(t, { voice: echo.address }, headers, FAKE_MICROPHONE);
  await join(page, url, options);
  return page;
}

/** Waits until a beep is played. A beep is far louder than encoded silence. */
const hear = (page) => page.evaluate(() => call.until(() => call.energy() > 1e-5, "a beep is played"));

test("the sound of a page is echoed and played, except while it is muted", async (t) => {
  const page = await hearingItself(t);
  await hear(page);
  const muted = await page.evaluate(async () => {
    const { voice, microphone, loudspeaker, energy, until } = call;
    voice.isMuted = true;
    const { sent } = voice.stats();
    const isSilent = () => voice.speakers().length === 0 && voice.speakerStats(call.connection).played === loudspeaker.stats().decoded && energy() === 0;
    let silences = 0;
    await until(() => (silences = isSilent() ? silences + 1 : 0) >= 50, "the output is silent");
    const { recorded, encoded } = microphone.stats();
    let loudest = 0;
    await until(() => {
      loudest = Math.max(loudest, energy());
      return microphone.stats().recorded >= recorded + 100;
    }, "two seconds are recorded");
    return { sent: voice.stats().sent - sent, encoded: microphone.stats().encoded - encoded, loudest, ...voice.speakerStats(call.connection), ...loudspeaker.stats() };
  });
  assert.deepEqual([muted.sent, muted.encoded, muted.loudest, muted.malformed], [0, 0, 0, 0]);
  assert.ok(muted.received > 0 && muted.decoded === muted.played && muted.played <= muted.received, JSON.stringify(muted));
  await page.evaluate(() => void (call.voice.isMuted = false));
  await hear(page);
  const end = await page.evaluate(async () => {
    call.microphone.close();
    call.loudspeaker.close();
    const { recorded } = call.microphone.stats();
    const ended = await call.microphone.closed;
    await call.connection.close();
    return { ended, more: call.microphone.stats().recorded - recorded, speakers: call.voice.speakers().length };
  });
  assert.deepEqual(end, { ended: undefined, more: 0, speakers: 0 });
});

test("push to talk sends from the press to the release, with a first and a last frame", async (t) => {
  const page = await hearingItself(t, { microphone: { isPushToTalk: true } });
  const result = await page.evaluate(async () => {
    const { voice, microphone, until } = call;
    const sentences = [];
    const { connection } = call;
    const send = connection.send.bind(connection);
    connection.send = (bytes, options) => {
      send(bytes, options);
      sentences.push({ flags: bytes[1], length: bytes.length });
    };
    await until(() => microphone.stats().recorded >= 10, "10 frames are recorded");
    const before = voice.stats().sent;
    for (let time = 0; time < 2; time++) {
      const { sent } = voice.stats();
      microphone.startTalking();
      await until(() => voice.stats().sent >= sent + 10, "10 frames are sent");
      microphone.stopTalking();
      await until(() => sentences.filter(({ flags }) => (flags & 2) !== 0).length === time + 1, "the last frame of the talk spurt is sent");
    }
    return { before, isTalking: microphone.isTalking, sentences };
  });
  assert.deepEqual([result.before, result.isTalking], [0, false]);
  const flags = result.sentences.map(({ flags }) => flags).join("");
  assert.match(flags, /^(10*2){2}$/);
  assert.deepEqual([...new Set(result.sentences.map(({ length }) => length))], [64], "24,000 bits a second are 60 bytes a frame");
});

test("lost frames are concealed, and invalid Opus frames are ignored", async (t) => {
  const page = await hearingItself(t);
  await hear(page);
  const result = await page.evaluate(async () => {
    const { connection, voice, loudspeaker, until } = call;
    let arrived = 0;
    const isLost = () => ++arrived % 5 === 0;
    const heal = call.onArrival((bytes) => (isLost() ? undefined : bytes));
    const { decoded } = loudspeaker.stats();
    await until(() => loudspeaker.stats().concealed >= 10 && loudspeaker.stats().decoded >= decoded + 40, "10 lost frames are concealed");
    heal();
    const { concealed } = voice.speakerStats(connection);
    // An Opus packet without a frame, a packet of 40 ms, and a truncated packet.
    const garbage = [[0x7b, 0], [0xfd, 1, 2, 3, 4], [0x79]];
    const repair = call.onArrival((bytes) => Uint8Array.of(...bytes.subarray(0, 4), ...garbage[++arrived % 3]));
    await until(() => loudspeaker.stats().malformed >= 30, "30 invalid Opus frames are counted");
    repair();
    return { concealed, malformed: voice.stats().malformed };
  });
  assert.ok(result.concealed >= 10, `${result.concealed}`);
  assert.equal(result.malformed, 0, "an invalid Opus frame must not count as a malformed voice message");
  await page.evaluate(async () => {
    const { decoded } = call.loudspeaker.stats();
    await call.until(() => call.loudspeaker.stats().decoded >= decoded + 10, "10 more frames are decoded");
  });
  await hear(page);
});

test("a worklet from workletUrl records if the browser has no track processor and the policy allows only the page's own scripts", async (t) => {
  const policy = "script-src 'self' 'wasm-unsafe-eval'";
  const echo = await startEcho(t);
  const { page, url } = await openWith(t, { voice: echo.address }, { "content-security-policy": policy }, FAKE_MICROPHONE);
  const code = await page.evaluate(async () => {
    delete globalThis.MediaStreamTrackProcessor;
    const { openMicrophone, Voice } = await import("/dist/voice.js");
    return openMicrophone(new Voice({ id: 0x90 })).catch(({ code }) => code);
  });
  assert.equal(code, "voice-unavailable");
  const own = { workletUrl: "/pkg/voice-worklet.js" };
  await join(page, url, { microphone: own, loudspeaker: own });
  await hear(page);
  const isGone = await page.evaluate(() => (call.microphone.close(), call.microphone.closed.then((error) => error === undefined)));
  assert.ok(isGone);
});

test("pages talk to each other and to a native server, which decodes Chromium's Opus and encodes its own", async (t) => {
  const server = await startPluginExample(t, "voice_server");
  const { page, url } = await openWith(t, { voice: server.address }, undefined, FAKE_MICROPHONE);
  const other = await page.context().browser().newPage();
  await other.goto(page.url(), { timeout: LIMIT_MS });
  for (const one of [page, other]) {
    await join(one, url, { microphone: { isPushToTalk: true } });
  }
  await page.evaluate(() => call.microphone.startTalking());
  await hear(other);
  await page.evaluate(() => call.until(() => call.voice.stats().sent >= 100, "100 frames are sent"));
  // The energy of the microphone's beep is a hundred times lower. The tone is short, so the pages start listening
  // before it can begin.
  const hearTone = (one) =>
    one.evaluate(() => {
      call.tone = call.until(() => call.energy() > 0.01, "the tone of the server is played");
    });
  await Promise.all([hearTone(page), hearTone(other)]);
  await page.evaluate(() => call.microphone.stopTalking());
  await Promise.all([page, other].map((one) => one.evaluate(() => call.tone)));
  await until(() => server.printed().includes("dB"), "the server prints the volume that it received");
  const counted = () => ({ malformed: call.loudspeaker.stats().malformed + call.voice.stats().malformed, ...call.voice.speakerStats(call.connection) });
  // The counters are read before the tone, because the server prints a level before it plays the tone.
  const [speaker, listener] = [await page.evaluate(counted), await other.evaluate(counted)];
  const levels = [...server.printed().matchAll(/^\d+ frames at (-?\d+) dB$/gm)].map(([, level]) => Number(level));
  assert.ok(levels.some((level) => level > -60 && level < -10), server.printed());
  assert.deepEqual([speaker.malformed, listener.malformed], [0, 0]);
  // The server does not return a speaker's own frames. It only receives the tone: 25 frames for each pause that the
  // server took for the end of speech.
  assert.ok(speaker.received < listener.received - 20 && speaker.received <= 25 * levels.length, JSON.stringify([speaker, listener]));
});

test("the example in voice.md runs", async (t) => {
  const echo = await startEcho(t);
  const { page, url } = await openWith(t, { voice: echo.address }, undefined, FAKE_MICROPHONE);
  const text = readFileSync(new URL("voice.md", import.meta.url), "utf8");
  const [, code] = /^```js\n(.*?)^```$/ms.exec(text);
  const result = await page.evaluate(
    async ([code, url]) => {
      const entries = { rakwire: "index", "rakwire/voice": "voice" };
      const source = code.replace(/from "(rakwire[^"]*)"/g, (_, entry) => `from "${location.origin}/dist/${entries[entry]}.js"`);
      const { speak } = await import(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
      const button = document.body.appendChild(document.createElement("button"));
      const { connection, voice, loudspeaker, microphone } = await speak(url, button);
      const before = microphone.isTalking;
      button.dispatchEvent(new Event("pointerdown"));
      for (const end = Date.now() + 60_000; loudspeaker.stats().decoded < 20 && Date.now() < end; ) {
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
      button.dispatchEvent(new Event("pointerup"));
      await connection.close();
      return [before, loudspeaker.stats().decoded >= 20, microphone.isTalking, voice.stats().malformed];
    },
    [code, url],
  );
  assert.deepEqual(result, [false, true, false, 0]);
});

for (const [what, flags, options, expected] of [
  ["refused", [FAKE_DEVICE, "--deny-permission-prompts"], {}, "microphone-refused"],
  ["missing", FAKE_MICROPHONE, { constraints: { deviceId: { exact: "none" } } }, "microphone-unavailable"],
]) {
  test(`opening a microphone that is ${what} fails with a code`, async (t) => {
    const { page } = await openWith(t, { voice: "127.0.0.1:9" }, undefined, flags);
    const error = await page.evaluate(async (options) => {
      const { openMicrophone, RakwireError, Voice } = await import("/dist/voice.js");
      const error = await openMicrophone(new Voice({ id: 0x90 }), options).catch((error) => error);
      return { code: error.code, isOurs: error instanceof RakwireError, cause: error.cause?.name };
    }, options);
    assert.deepEqual({ ...error, cause: typeof error.cause }, { code: expected, isOurs: true, cause: "string" });
  });
}
