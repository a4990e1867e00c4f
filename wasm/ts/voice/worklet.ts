/** Runs in the audio thread: plays sound and, in browsers where the page cannot read a track, records it. */

import type { FromPage } from "./sound.js";
import { CAPTURE, mixDown, Mixer, PLAYBACK } from "./sound.js";

declare class AudioWorkletProcessor {
  readonly port: MessagePort;
}
declare function registerProcessor(name: string, processor: new () => AudioWorkletProcessor): void;

/** Plays the sound of the page, and requests each further frame. */
class PlaybackProcessor extends AudioWorkletProcessor {
  readonly #mixer = new Mixer();
  #isOver = false;

  constructor() {
    super();
    this.port.onmessage = ({ data }: MessageEvent<FromPage>) => {
      if (data === "close") {
        this.#isOver = true;
      } else {
        this.#mixer.push(data.speaker, data.samples);
      }
    };
  }

  process(_inputs: Float32Array[][], [output]: Float32Array[][]): boolean {
    const [channel] = output ?? [];
    if (channel !== undefined) {
      const due = this.#mixer.mixInto(channel);
      if (due > 0) {
        this.port.postMessage(due);
      }
    }
    return !this.#isOver;
  }
}

/** Sends recorded sound to the page. */
class CaptureProcessor extends AudioWorkletProcessor {
  process([input]: Float32Array[][]): boolean {
    if (input !== undefined && input.length > 0) {
      const block = mixDown(input);
      this.port.postMessage(block, [block.buffer]);
    }
    return true;
  }
}

registerProcessor(PLAYBACK, PlaybackProcessor);
registerProcessor(CAPTURE, CaptureProcessor);
