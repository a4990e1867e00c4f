/**
 * Sound without a platform: frames out of blocks of any length, and those of all speakers in one. The thread of audio has it too, and
 * what the page and it tell each other.
 */

/** The sound of a frame: 20 ms of one channel, as Opus has it at both sides of the wire. */
export const SAMPLE_RATE = 48_000;
export const FRAME_MS = 20;
export const FRAME_SAMPLES = (SAMPLE_RATE * FRAME_MS) / 1_000;
/** The same in the unit of buffers and of WebCodecs. */
export const FRAME_MICROS = FRAME_MS * 1_000;

/** Frames of 20 ms out of blocks of any length. */
export class Framer {
  #frame: Float32Array<ArrayBuffer>;
  #length = 0;

  constructor(samples: number) {
    this.#frame = new Float32Array(samples);
  }

  /** Adds a block, and returns the frames that are complete. */
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

/** One channel of several. */
export function mixDown(channels: readonly Float32Array[]): Float32Array<ArrayBuffer> {
  const mixed = new Float32Array(channels[0]?.length ?? 0);
  for (const channel of channels) {
    channel.forEach((sample, at) => void (mixed[at] = (mixed[at] as number) + sample / channels.length));
  }
  return mixed;
}

/** What waits of a speaker at most, in frames. What is older was late, and is left out. */
const MAX_FRAMES = 3;

/** What waits of one speaker. */
class Waiting {
  #frames: Float32Array[] = [];
  #offset = 0;
  /** The first frame waits for as long as it lasts, since those behind it do not come as evenly as they are played. */
  #untilFirst = FRAME_SAMPLES;

  push(frame: Float32Array): void {
    this.#frames.push(frame);
    if (this.#frames.length > MAX_FRAMES) {
      this.#frames.shift();
      this.#offset = 0;
    }
  }

  /** Adds what is next; false if nothing is left. */
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

/** The sound of all speakers in one, for the thread that feeds the loudspeaker. */
export class Mixer {
  readonly #speakers = new Map<number, Waiting>();
  #rendered = 0;

  /** A frame of a speaker, which must not be empty. */
  push(speaker: number, frame: Float32Array): void {
    const waiting = this.#speakers.get(speaker) ?? new Waiting();
    this.#speakers.set(speaker, waiting);
    waiting.push(frame);
  }

  /** Adds the next sound of all, and returns how many frames are due until the next time. */
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

/** What a page and its audio worklet have in common: the names of the processors. */
export const PLAYBACK = "rakwire-voice-playback";
export const CAPTURE = "rakwire-voice-capture";

/** To the processor for playback, which answers with how many frames are due. */
export type FromPage = "close" | { readonly speaker: number; readonly samples: Float32Array };
