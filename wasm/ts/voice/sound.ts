/**
 * Audio processing without platform features. Splits blocks into frames, buffers the frames of a speaker against
 * network jitter, and mixes all speakers. The audio thread shares this module, so the messages between it and the page
 * are also declared here.
 */

/** The format of a frame: 20 ms of mono sound, as Opus uses it on both sides. */
export const SAMPLE_RATE = 48_000;
export const FRAME_MS = 20;
export const FRAME_SAMPLES = (SAMPLE_RATE * FRAME_MS) / 1_000;
/** The duration of a frame in microseconds, the time unit of buffers and WebCodecs. */
export const FRAME_MICROS = FRAME_MS * 1_000;

/** The number of distinct frame numbers: 65,535 is followed by 0. */
const NUMBERS = 0x1_0000;
/** The number of arrivals used to measure jitter: the last 1.3 s at 20 ms per frame. */
const HISTORY = 64;
/** The number of arrivals in the history that the buffer delay does not cover. */
const TOLERATED = 2;
/**
 * The maximum number of consecutive frames to conceal. Playback then skips to the next frame that has arrived. If there
 * is none, the speaker counts as silent.
 */
const MAX_GAP = 5;
/** One frame is skipped after this number of consecutive frames for which the buffer was fuller than needed. */
const SURPLUS_FRAMES = 50;
/**
 * The number of frames after which a newer frame becomes the reference of the jitter measurement. It must stay below
 * half of {@link NUMBERS}, because frame numbers wrap around.
 */
const MAX_SINCE = 1 << 10;
/** The maximum lateness that is recorded, in microseconds. */
const MAX_LATENESS = 0xffff_ffff;
/** The maximum number of frames that wait to be played per speaker. Older ones are dropped as late. */
const MAX_FRAMES = 3;

/** Splits blocks of any length into frames of 20 ms. */
export class Framer {
  #frame: Float32Array<ArrayBuffer>;
  #length = 0;

  constructor(samples: number) {
    this.#frame = new Float32Array(samples);
  }

  /** Adds a block, and returns the completed frames. */
  push(block: Float32Array): Float32Array<ArrayBuffer>[] {
    const frames = [];
    for (let rest = block; rest.length > 0; ) {
      const part = rest.subarray(0, this.#frame.length - this.#length);
      this.#frame.set(part, this.#length);
      this.#length += part.length;
      rest = rest.subarray(part.length);
      if (this.#length === this.#frame.length) {
        frames.push(this.#frame);
        this.#frame = new Float32Array(this.#frame.length);
        this.#length = 0;
      }
    }
    return frames;
  }
}

/** Mixes several channels into one. */
export function mixDown(channels: readonly Float32Array[]): Float32Array<ArrayBuffer> {
  const mixed = new Float32Array(channels[0]?.length ?? 0);
  for (const channel of channels) {
    channel.forEach((sample, at) => void (mixed[at] = (mixed[at] as number) + sample / channels.length));
  }
  return mixed;
}

/** The sound of one speaker that waits to be played. */
class Waiting {
  #frames: Float32Array[] = [];
  #offset = 0;
  /** The delay of the first frame in samples. It absorbs uneven arrival of frames. */
  #untilFirst = FRAME_SAMPLES;

  push(frame: Float32Array): void {
    this.#frames.push(frame);
    if (this.#frames.length > MAX_FRAMES) {
      this.#frames.shift();
      this.#offset = 0;
    }
  }

  /** Adds the next samples to the output. Returns false if none remain. */
  mixInto(output: Float32Array): boolean {
    if (this.#untilFirst > 0) {
      this.#untilFirst -= output.length;
      return true;
    }
    for (let at = 0; at < output.length; at++) {
      const frame = this.#frames[0];
      if (frame === undefined) {
        return false;
      }
      output[at] = (output[at] as number) + (frame[this.#offset] as number);
      this.#offset += 1;
      if (this.#offset >= frame.length) {
        this.#frames.shift();
        this.#offset = 0;
      }
    }
    return true;
  }
}

/** Mixes all speakers, in the audio thread. */
export class Mixer {
  readonly #speakers = new Map<number, Waiting>();
  #rendered = 0;

  /** Adds a frame of a speaker. The frame must not be empty. */
  push(speaker: number, frame: Float32Array): void {
    const waiting = this.#speakers.get(speaker) ?? new Waiting();
    this.#speakers.set(speaker, waiting);
    waiting.push(frame);
  }

  /** Adds the next samples of all speakers to the output. Returns the number of frames that became due. */
  mixInto(output: Float32Array): number {
    for (const [speaker, waiting] of this.#speakers) {
      if (!waiting.mixInto(output)) {
        this.#speakers.delete(speaker);
      }
    }
    this.#rendered += output.length;
    const due = Math.floor(this.#rendered / FRAME_SAMPLES);
    this.#rendered %= FRAME_SAMPLES;
    return due;
  }
}

/** The names of the processors, shared by a page and its audio worklet. */
export const PLAYBACK = "rakwire-voice-playback";
export const CAPTURE = "rakwire-voice-capture";

/** A message to the playback processor, which replies with the number of frames due. */
export type FromPage = "close" | { readonly speaker: number; readonly samples: Float32Array };

/** The next sound to play: a received frame, a concealed frame, or silence. */
export type Playback =
  | { readonly kind: "frame"; readonly bytes: Uint8Array }
  | { readonly kind: "concealed" }
  | { readonly kind: "silence" };

/** Counters of the frames of a speaker. */
export interface SpeakerStats {
  /** Frames that arrived. */
  readonly received: number;
  /** Frames that were played. */
  readonly played: number;
  /** Frames that had not arrived when they were due. */
  readonly concealed: number;
  /** Frames that arrived after their playback time. */
  readonly late: number;
  /** Frames that were skipped because too many were buffered. */
  readonly skipped: number;
}

export interface BufferSettings {
  readonly frameTime: number;
  readonly maxDelay: number;
  /** The capacity of the buffer in frames. */
  readonly frames: number;
}

const CONCEALED: Playback = { kind: "concealed" };
const SILENCE: Playback = { kind: "silence" };

/** The jitter buffer of a speaker: delays frames by the jitter of the network, and reports missing frames. */
export class JitterBuffer {
  readonly #settings: BufferSettings;
  /** The buffered frames, indexed by frame number modulo the capacity. */
  readonly #frames: (VoiceFrame | undefined)[];
  #phase: "silent" | "filling" | "playing" = "silent";
  /** The time until which the first frame of a talk spurt is delayed. */
  #until = 0;
  /** The number of the next frame to play. */
  #next = 0;
  /** The highest frame number that has arrived. */
  #highest = 0;
  /**
   * The number of the reference frame of the current talk spurt, and the time when it would have arrived with the
   * shortest delay so far.
   */
  #first = 0;
  #quickest = 0;
  /** The lateness of recent arrivals relative to the fastest one. */
  readonly #lateness: number[] = [];
  /** The number of consecutive missing frames. */
  #gap = 0;
  /** The number of consecutive frames with a fuller buffer than needed. */
  #surplus = 0;
  readonly #stats = { received: 0, played: 0, concealed: 0, late: 0, skipped: 0 };

  constructor(settings: BufferSettings) {
    this.#settings = settings;
    this.#frames = Array<VoiceFrame | undefined>(settings.frames).fill(undefined);
  }

  get isSilent(): boolean {
    return this.#phase === "silent";
  }

  stats(): SpeakerStats {
    return { ...this.#stats };
  }

  /**
   * The playback delay of the first frame of a talk spurt: the lateness of recent arrivals, except the
   * {@link TOLERATED} latest ones, plus half a frame.
   */
  get delay(): number {
    const { frameTime, maxDelay, frames } = this.#settings;
    const latest = [...this.#lateness].sort((a, b) => b - a);
    const earliest = latest.at(-1) ?? 0;
    const uneven = (latest[TOLERATED] ?? earliest) - earliest;
    return Math.min(uneven + frameTime / 2, maxDelay, frameTime * (frames - 1));
  }

  /** Stores a received frame. Its bytes are not copied, so they must not change. */
  insert(now: number, frame: VoiceFrame): void {
    const { number, isFirst } = frame;
    this.#stats.received += 1;
    const distance = ahead(number, this.#next);
    if (this.isSilent || (distance >= this.#settings.frames && !isBehind(distance))) {
      this.#begin(now, number);
    } else if (isBehind(distance)) {
      this.#stats.late += 1;
      this.#observe(now, number);
      return;
    }
    if (isFirst) {
      // The pause before a talk spurt is not network delay.
      [this.#first, this.#quickest] = [number, now];
    }
    this.#observe(now, number);
    if (!isBehind(ahead(number, this.#highest))) {
      this.#highest = number;
    }
    this.#frames[number % this.#frames.length] = frame;
  }

  /** Returns the sound for the next frame, which is due. */
  play(now: number): Playback {
    if (this.isSilent || (this.#phase === "filling" && now < this.#until)) {
      return SILENCE;
    }
    if (this.#phase === "filling") {
      this.#phase = "playing";
    } else {
      this.#skipSurplus();
    }
    if (this.#gap >= MAX_GAP) {
      this.#next = this.#nextPresent() ?? this.#next;
    }
    const frame = this.#take();
    if (frame === undefined) {
      return this.#conceal();
    }
    this.#next = plus(this.#next, 1);
    this.#gap = 0;
    this.#stats.played += 1;
    if (frame.isLast) {
      this.#endSentence(now);
    }
    return { kind: "frame", bytes: frame.bytes };
  }

  /** Starts a talk spurt, and discards frames from before it. */
  #begin(now: number, number: number): void {
    this.#frames.fill(undefined);
    this.#next = this.#highest = this.#first = number;
    this.#quickest = now;
    this.#gap = this.#surplus = 0;
    this.#fill(now);
  }

  #fill(now: number): void {
    this.#phase = "filling";
    this.#until = now + this.delay;
  }

  /** Records the lateness of a frame relative to the fastest one of the talk spurt. */
  #observe(now: number, number: number): void {
    const since = ahead(number, this.#first);
    // A frame older than the reference frame cannot be compared.
    if (isBehind(since)) {
      return;
    }
    const { frameTime } = this.#settings;
    const late = now - (this.#quickest + frameTime * since);
    this.#quickest = Math.max(0, this.#quickest + Math.min(late, 0));
    this.#lateness.push(Math.min(Math.max(late, 0), MAX_LATENESS));
    if (this.#lateness.length > HISTORY) {
      this.#lateness.shift();
    }
    if (since >= MAX_SINCE) {
      this.#quickest += frameTime * since;
      this.#first = number;
    }
  }

  /** Becomes silent, unless the next talk spurt has already started to arrive. */
  #endSentence(now: number): void {
    const next = this.#nextPresent();
    if (next === undefined) {
      this.#phase = "silent";
    } else {
      this.#next = next;
      this.#fill(now);
    }
  }

  /** Returns the number of the first frame that has arrived, starting at the due frame. */
  #nextPresent(): number | undefined {
    const numbers = Array.from({ length: Math.min(this.#waiting, this.#frames.length) }, (_, distance) => plus(this.#next, distance));
    return numbers.find((number) => this.#frames[number % this.#frames.length]?.number === number);
  }

  #take(): VoiceFrame | undefined {
    const place = this.#next % this.#frames.length;
    const frame = this.#frames[place];
    if (frame?.number !== this.#next) {
      return undefined;
    }
    this.#frames[place] = undefined;
    return frame;
  }

  /**
   * Handles a missing frame. It is lost if later frames have arrived. Otherwise it may still arrive, and the buffer
   * waits.
   */
  #conceal(): Playback {
    if (this.#waiting > 0) {
      this.#next = plus(this.#next, 1);
    }
    this.#gap += 1;
    if (this.#gap > MAX_GAP) {
      this.#phase = "silent";
      return SILENCE;
    }
    this.#stats.concealed += 1;
    return CONCEALED;
  }

  /** The number of frames from the due frame to the highest one that has arrived, inclusive. */
  get #waiting(): number {
    const distance = ahead(this.#highest, this.#next);
    return isBehind(distance) ? 0 : distance + 1;
  }

  /** Skips a frame if the buffer has been fuller than needed for long enough. */
  #skipSurplus(): void {
    const needed = Math.ceil(this.delay / Math.max(this.#settings.frameTime, 1)) + 1;
    if (this.#waiting <= needed) {
      this.#surplus = 0;
      return;
    }
    this.#surplus += 1;
    if (this.#surplus >= SURPLUS_FRAMES) {
      this.#surplus = 0;
      if (this.#take() !== undefined) {
        this.#stats.skipped += 1;
      }
      this.#next = plus(this.#next, 1);
    }
  }
}

/** A voice frame, received or to be sent. */
export interface VoiceFrame {
  readonly number: number;
  /** True for the first frame of a talk spurt, before which no frames are missing. */
  readonly isFirst: boolean;
  /** True for the last frame of a talk spurt, after which a pause follows. */
  readonly isLast: boolean;
  readonly bytes: Uint8Array;
}

/** Adds a distance, which may be negative, to a frame number. */
export const plus = (number: number, distance: number): number => (number + distance) & (NUMBERS - 1);

/** Returns the distance from one frame number to another. The upper half of the range means behind. */
const ahead = (number: number, from: number): number => plus(number, -from);

/** Returns true if a distance of {@link ahead} means an earlier number. */
const isBehind = (distance: number): boolean => distance >= NUMBERS / 2;
