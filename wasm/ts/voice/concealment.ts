/** Sound for frames that are missing: WebCodecs has no concealment, so the last period of the voice is repeated and fades. */

import { FRAME_SAMPLES, SAMPLE_RATE } from "./format.js";

/** Voices have periods between these. */
const SHORTEST = SAMPLE_RATE / 400;
const LONGEST = Math.round(SAMPLE_RATE / 66);
/** What is compared with what was a period before. */
const COMPARED = FRAME_SAMPLES;
const HISTORY = COMPARED + LONGEST;
/** Every so many samples are compared. */
const STRIDE = 4;
/** How much of it is left after one more frame. */
const FADE = 0.5;
/** How long a frame and what was made up before it are blended. */
const BLENDED = SAMPLE_RATE / 200;

export class Concealer {
  readonly #history = new Float32Array(HISTORY);
  /** The last period before the gap, and how many samples were made of it. */
  #period: Float32Array | undefined;
  #made = 0;

  /** A frame that has arrived, blended with what was made up before it. */
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

  /** A frame in place of one that is missing. */
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

/** The distance at which sound is most like itself. */
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
