/** The sound of all speakers in one, for the thread that feeds the loudspeaker. */

import { FRAME_SAMPLES } from "./format.js";

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
