/**
 * Audio processing without platform features: splits blocks into frames, and mixes the frames of all speakers. Also
 * used in the audio thread, with the messages between it and the page.
 */

/** The format of a frame: 20 ms of one channel, as Opus has it on both sides. */
export const SAMPLE_RATE = 48_000;
export const FRAME_MS = 20;
export const FRAME_SAMPLES = (SAMPLE_RATE * FRAME_MS) / 1_000;
/** The length of a frame in microseconds, the unit of buffers and WebCodecs. */
export const FRAME_MICROS = FRAME_MS * 1_000;

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

/** The maximum number of frames buffered per speaker. Older ones are late and dropped. */
const MAX_FRAMES = 3;

/** The buffered sound of one speaker. */
class Waiting {
  #frames: Float32Array[] = [];
  #offset = 0;
  /** Samples by which the first frame is delayed, because frames arrive less evenly than they are played. */
  #untilFirst = FRAME_SAMPLES;

  push(frame: Float32Array): void {
    this.#frames.push(frame);
    if (this.#frames.length > MAX_FRAMES) {
      this.#frames.shift();
      this.#offset = 0;
    }
  }

  /** Adds the next samples to the output; false if none remain. */
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

/** Mixes the sound of all speakers in the thread that feeds the loudspeaker. */
export class Mixer {
  readonly #speakers = new Map<number, Waiting>();
  #rendered = 0;

  /** Adds a frame of a speaker. It must not be empty. */
  push(speaker: number, frame: Float32Array): void {
    const waiting = this.#speakers.get(speaker) ?? new Waiting();
    this.#speakers.set(speaker, waiting);
    waiting.push(frame);
  }

  /** Adds the next sound of all speakers, and returns the number of frames that became due. */
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

/** A message to the playback processor, which answers with the number of frames due. */
export type FromPage = "close" | { readonly speaker: number; readonly samples: Float32Array };
