/** SHA-256 of bytes that come one after the other, which no platform offers to pages. */

const BLOCK = 64;
const ROUNDS = 64;
/** The bytes after the message: a set bit and the length in bits. */
const TAIL = 9;

/** The first bits behind the point of a root of each of the first primes, with which the algorithm begins. */
function roots(count: number, exponent: number): number[] {
  const found: number[] = [];
  for (let number = 2; found.length < count; number++) {
    let factor = 2;
    while (number % factor !== 0) {
      factor += 1;
    }
    if (factor === number) {
      found.push((number ** exponent * 2 ** 32) | 0);
    }
  }
  return found;
}

const K = /* @__PURE__ */ roots(ROUNDS, 1 / 3);
const H = /* @__PURE__ */ roots(8, 1 / 2);

const rotate = (word: number, count: number): number => (word >>> count) | (word << (32 - count));

/** A digest on its way. */
export class Sha256 {
  readonly #state = Int32Array.from(H);
  readonly #words = new Int32Array(ROUNDS);
  readonly #rest = new Uint8Array(BLOCK);
  #length = 0;

  update(bytes: Uint8Array): void {
    let at = 0;
    const used = this.#length % BLOCK;
    this.#length += bytes.length;
    if (used > 0) {
      at = Math.min(BLOCK - used, bytes.length);
      this.#rest.set(bytes.subarray(0, at), used);
      if (used + at < BLOCK) {
        return;
      }
      this.#compress(this.#rest, 0);
    }
    for (; at + BLOCK <= bytes.length; at += BLOCK) {
      this.#compress(bytes, at);
    }
    this.#rest.set(bytes.subarray(at));
  }

  /** The digest; nothing may follow. */
  finish(): Uint8Array<ArrayBuffer> {
    const length = this.#length;
    const used = length % BLOCK;
    const tail = new Uint8Array(used + TAIL <= BLOCK ? BLOCK - used : 2 * BLOCK - used);
    tail[0] = 0x80;
    new DataView(tail.buffer).setBigUint64(tail.length - 8, 8n * BigInt(length));
    this.update(tail);
    const digest = new DataView(new ArrayBuffer(4 * H.length));
    this.#state.forEach((word, index) => digest.setInt32(4 * index, word));
    return new Uint8Array(digest.buffer);
  }

  #compress(bytes: Uint8Array, at: number): void {
    const words = this.#words;
    const view = new DataView(bytes.buffer, bytes.byteOffset + at, BLOCK);
    for (let index = 0; index < 16; index++) {
      words[index] = view.getInt32(4 * index);
    }
    for (let index = 16; index < ROUNDS; index++) {
      const early = words[index - 15] as number;
      const late = words[index - 2] as number;
      const low = rotate(early, 7) ^ rotate(early, 18) ^ (early >>> 3);
      const high = rotate(late, 17) ^ rotate(late, 19) ^ (late >>> 10);
      words[index] = ((words[index - 16] as number) + low + (words[index - 7] as number) + high) | 0;
    }
    let [a, b, c, d, e, f, g, h] = this.#state as unknown as [number, number, number, number, number, number, number, number];
    for (let index = 0; index < ROUNDS; index++) {
      const choice = (e & f) ^ (~e & g);
      const first = (h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + choice + (K[index] as number) + (words[index] as number)) | 0;
      const majority = (a & b) ^ (a & c) ^ (b & c);
      const second = ((rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + majority) | 0;
      [h, g, f, e, d, c, b, a] = [g, f, e, (d + first) | 0, c, b, a, (first + second) | 0];
    }
    [a, b, c, d, e, f, g, h].forEach((word, index) => ((this.#state[index] as number) += word));
  }
}
