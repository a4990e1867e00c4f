/** The sound of one speaker: what its buffer gives, decoded or made up, in order. */

import { channelsOf } from "./capture.js";
import { Concealer } from "./concealment.js";
import { FRAME_MICROS, FRAME_SAMPLES } from "./format.js";
import { mixDown } from "./framer.js";
import type { Playback } from "./jitter-buffer.js";
import { OPUS } from "./platform.js";

/** Frames that a decoder may have before it counts as stuck; more than a page gets at once that was busy for a second. */
const MAX_DECODING = 64;

/** Counters of a loudspeaker, of all speakers. */
export interface LoudspeakerStats {
  /** Frames that were decoded. */
  readonly decoded: number;
  /** Frames that were made up from those before. */
  readonly concealed: number;
  /** Frames that are no Opus, or none of 20 ms; others were made up in their places. */
  readonly malformed: number;
}

/** The sound of a speaker. */
export class SpeakerSound {
  readonly #onSound: (samples: Float32Array<ArrayBuffer>) => void;
  readonly #stats: { -readonly [Name in keyof LoudspeakerStats]: LoudspeakerStats[Name] };
  readonly #concealer = new Concealer();
  #decoder: AudioDecoder | undefined;
  /** What follows the last sound: a frame that the decoder has, or one that is made up behind it. */
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

  /** The decoder has ended with what it had. */
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

  /** Makes up what is next, up to the first frame that is being decoded. */
  #concealNext(): void {
    while (this.#pending[0] === "concealed") {
      this.#pending.shift();
      this.#stats.concealed += 1;
      this.#onSound(this.#concealer.conceal());
    }
  }
}
