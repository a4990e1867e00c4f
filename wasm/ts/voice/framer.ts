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
