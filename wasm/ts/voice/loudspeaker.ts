/** Plays the speakers of a voice: WebCodecs decodes them, and an audio worklet mixes and plays them. */

import { RakwireError } from "../errors.js";
import { checkNames } from "../options.js";
import type { Connection } from "../types.js";
import type { Playback } from "./sound.js";
import type { WorkletOptions } from "./platform.js";
import { channelsOf, createContext, loadWorklet, OPUS, requireCodec, start, WORKLET_OPTIONS } from "./platform.js";
import { FRAME_MICROS, FRAME_SAMPLES, mixDown, PLAYBACK, SAMPLE_RATE } from "./sound.js";
import type { Voice } from "./voice.js";

/** Options of a loudspeaker. */
export interface LoudspeakerOptions extends WorkletOptions {
  /** The output node, in a context with 48,000 samples per second. Default: the output of a new context. */
  destination?: AudioNode;
}

/** An open loudspeaker. */
export interface Loudspeaker {
  /**
   * The audio context. Browsers allow playback only after the user has clicked or pressed a key; call its `resume`
   * then.
   */
  readonly context: BaseAudioContext;
  close(): void;
  stats(): LoudspeakerStats;
}

/**
 * Plays all speakers of `voice`, including those that join later.
 *
 * @throws RakwireError with the code `voice-unavailable` or `bad-option`.
 */
export async function openLoudspeaker(voice: Voice, options: LoudspeakerOptions = {}): Promise<Loudspeaker> {
  checkNames(options, [...WORKLET_OPTIONS, "destination"]);
  await requireCodec("AudioDecoder", globalThis.AudioDecoder, OPUS);
  const { destination } = options;
  if (destination !== undefined && destination.context.sampleRate !== SAMPLE_RATE) {
    throw new RakwireError("bad-option", `destination must have a context with ${SAMPLE_RATE} samples per second`);
  }
  const own = destination === undefined ? createContext() : undefined;
  const target = destination ?? (own as AudioContext).destination;
  try {
    await loadWorklet(target.context, options);
  } catch (error) {
    void own?.close();
    throw error;
  }
  if (own !== undefined) {
    start(own);
  }
  return new OpenLoudspeaker(voice, target, own);
}

class OpenLoudspeaker implements Loudspeaker {
  readonly context: BaseAudioContext;
  readonly #voice: Voice;
  readonly #own: AudioContext | undefined;
  readonly #node: AudioWorkletNode;
  readonly #sounds = new Map<Connection, SpeakerSound>();
  readonly #stats = { decoded: 0, concealed: 0, malformed: 0 };
  #speakers = 0;

  constructor(voice: Voice, target: AudioNode, own: AudioContext | undefined) {
    this.#voice = voice;
    this.context = target.context;
    this.#own = own;
    this.#node = new AudioWorkletNode(target.context, PLAYBACK, { numberOfInputs: 0, outputChannelCount: [1] });
    this.#node.port.onmessage = ({ data }: MessageEvent<number>) => this.#onDue(data);
    this.#node.connect(target);
  }

  close(): void {
    this.#node.port.onmessage = null;
    this.#node.port.postMessage("close");
    this.#node.disconnect();
    this.#sounds.forEach((sound) => sound.close());
    this.#sounds.clear();
    if (this.#own !== undefined && this.#own.state !== "closed") {
      void this.#own.close();
    }
  }

  stats(): LoudspeakerStats {
    return { ...this.#stats };
  }

  /** Supplies frames when the audio device requests them, because browsers throttle timers of hidden pages. */
  #onDue(frames: number): void {
    for (const [connection, sound] of this.#sounds) {
      if (!this.#voice.has(connection)) {
        sound.close();
        this.#sounds.delete(connection);
      }
    }
    for (const connection of this.#voice.speakers()) {
      const sound = this.#sounds.get(connection) ?? this.#add(connection);
      for (let frame = 0; frame < frames; frame++) {
        sound.play(this.#voice.play(connection));
      }
    }
  }

  #add(connection: Connection): SpeakerSound {
    const speaker = this.#speakers;
    this.#speakers += 1;
    const sound = new SpeakerSound(this.#stats, (samples) => this.#node.port.postMessage({ speaker, samples }, [samples.buffer]));
    this.#sounds.set(connection, sound);
    return sound;
  }
}

/**
 * The number of frames in a decoder above which it counts as stuck. A page that was busy for a second delivers fewer at
 * once.
 */
const MAX_DECODING = 64;

/** Counters of a loudspeaker, summed over all speakers. */
export interface LoudspeakerStats {
  /** Frames that were decoded. */
  readonly decoded: number;
  /** Frames that were missing and were concealed. */
  readonly concealed: number;
  /** Frames that are not Opus or not 20 ms long. They were concealed instead. */
  readonly malformed: number;
}

/** The sound of one speaker: decoded and concealed frames in order. */
class SpeakerSound {
  readonly #onSound: (samples: Float32Array<ArrayBuffer>) => void;
  readonly #stats: { -readonly [Name in keyof LoudspeakerStats]: LoudspeakerStats[Name] };
  readonly #concealer = new Concealer();
  #decoder: AudioDecoder | undefined;
  /** The next frames in order, each either in the decoder or to be concealed. */
  #pending: ("frame" | "concealed")[] = [];
  #time = 0;

  constructor(stats: LoudspeakerStats, onSound: (samples: Float32Array<ArrayBuffer>) => void) {
    this.#stats = stats;
    this.#onSound = onSound;
  }

  play(playback: Playback): void {
    if (playback.kind === "silence") {
      return;
    }
    this.#pending.push(playback.kind);
    if (playback.kind === "frame") {
      this.#decode(playback.bytes);
    }
    this.#concealNext();
  }

  close(): void {
    this.#pending = [];
    if (this.#decoder?.state === "configured") {
      this.#decoder.close();
    }
  }

  #decode(data: Uint8Array): void {
    if (this.#pending.length > MAX_DECODING) {
      this.#fail();
      return;
    }
    try {
      this.#decoder ??= this.#open();
      this.#decoder.decode(new EncodedAudioChunk({ type: "key", timestamp: this.#time, data: data as Uint8Array<ArrayBuffer> }));
      this.#time += FRAME_MICROS;
    } catch {
      this.#fail();
    }
  }

  #open(): AudioDecoder {
    const decoder = new AudioDecoder({
      output: (data) => {
        const samples = mixDown(channelsOf(data));
        data.close();
        if (this.#decoder === decoder) {
          this.#onDecoded(samples);
        }
      },
      error: () => {
        if (this.#decoder === decoder) {
          this.#fail();
        }
      },
    });
    decoder.configure(OPUS);
    return decoder;
  }

  #onDecoded(samples: Float32Array<ArrayBuffer>): void {
    if (this.#pending[0] !== "frame") {
      return;
    }
    if (samples.length !== FRAME_SAMPLES) {
      this.#stats.malformed += 1;
      this.#pending[0] = "concealed";
    } else {
      this.#pending.shift();
      this.#stats.decoded += 1;
      this.#onSound(this.#concealer.take(samples));
    }
    this.#concealNext();
  }

  /** Handles a failure of the decoder, which loses its frames. */
  #fail(): void {
    const lost = this.#pending.filter((kind) => kind === "frame").length;
    this.#stats.malformed += lost;
    this.#pending = this.#pending.map(() => "concealed");
    if (this.#decoder?.state === "configured") {
      this.#decoder.close();
    }
    this.#decoder = undefined;
    this.#concealNext();
  }

  /** Conceals missing frames up to the first frame that is in the decoder. */
  #concealNext(): void {
    while (this.#pending[0] === "concealed") {
      this.#pending.shift();
      this.#stats.concealed += 1;
      this.#onSound(this.#concealer.conceal());
    }
  }
}

/** The range of pitch periods in samples. */
const SHORTEST = SAMPLE_RATE / 400;
const LONGEST = Math.round(SAMPLE_RATE / 66);
/** The number of samples compared with those one period earlier. */
const COMPARED = FRAME_SAMPLES;
const HISTORY = COMPARED + LONGEST;
/** The stride of the comparison: every fourth sample is compared. */
const STRIDE = 4;
/** The factor by which the volume of each further concealed frame decreases. */
const FADE = 0.5;
/** The number of samples over which a received frame is cross-faded with the concealed sound before it. */
const BLENDED = SAMPLE_RATE / 200;

/** Conceals missing frames, which WebCodecs does not do, by repeating the last pitch period with a fade-out. */
export class Concealer {
  readonly #history = new Float32Array(HISTORY);
  /** The last pitch period before the gap, and the number of samples generated from it. */
  #period: Float32Array | undefined;
  #made = 0;

  /** Takes a received frame, cross-faded with concealed sound if that precedes it. */
  take(frame: Float32Array<ArrayBuffer>): Float32Array<ArrayBuffer> {
    if (this.#period !== undefined) {
      for (const [at, madeUp] of this.#make(Math.min(BLENDED, frame.length)).entries()) {
        frame[at] = madeUp + ((frame[at] as number) - madeUp) * (at / BLENDED);
      }
      this.#period = undefined;
    }
    this.#remember(frame);
    return frame;
  }

  /** Returns a frame that conceals a missing one: the last pitch period, repeated and faded out. */
  conceal(): Float32Array<ArrayBuffer> {
    if (this.#period === undefined) {
      this.#period = this.#history.slice(-periodOf(this.#history));
      this.#made = 0;
    }
    return this.#make(FRAME_SAMPLES);
  }

  #make(length: number): Float32Array<ArrayBuffer> {
    const period = this.#period ?? this.#history;
    const from = this.#made;
    this.#made += length;
    return Float32Array.from({ length }, (_, at) => (period[(from + at) % period.length] as number) * FADE ** ((from + at) / FRAME_SAMPLES));
  }

  #remember(frame: Float32Array): void {
    const rest = frame.subarray(-HISTORY);
    this.#history.copyWithin(0, rest.length);
    this.#history.set(rest, HISTORY - rest.length);
  }
}

/** Returns the pitch period: the distance at which the sound is most similar to itself. */
function periodOf(sound: Float32Array): number {
  let [best, likeness] = [LONGEST, 0];
  for (let period = SHORTEST; period <= LONGEST; period++) {
    let [product, energy] = [0, Number.MIN_VALUE];
    for (let at = sound.length - COMPARED; at < sound.length; at += STRIDE) {
      const before = sound[at - period] as number;
      product += (sound[at] as number) * before;
      energy += before * before;
    }
    if (product / Math.sqrt(energy) > likeness) {
      [best, likeness] = [period, product / Math.sqrt(energy)];
    }
  }
  return best;
}
