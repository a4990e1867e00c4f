/** Runs in the thread of audio: what is played and, where a page cannot read a track, what is recorded. */

import type { FromPage } from "./sound.js";
import { CAPTURE, mixDown, Mixer, PLAYBACK } from "./sound.js";

declare class AudioWorkletProcessor {
  readonly port: MessagePort;
}
declare function registerProcessor(name: string, processor: new () => AudioWorkletProcessor): void;

/** Plays what the page sends, and says each time that one more frame is due. */
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

/** Sends what is recorded to the page. */
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
