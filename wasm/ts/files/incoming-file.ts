/** A file on its way: what is here of it, and its digest so far. */

import type { NamedEntry } from "./manifest.js";
import { Sha256 } from "./sha256.js";

/** How many bytes of a blob are read at a time. */
const SLICE = 256 * 1_024;

/** What is here of a file, from its beginning on. */
export type PresentBytes = Uint8Array | Blob;

export class IncomingFile {
  readonly entry: NamedEntry;
  readonly number: number;
  /** Whether it is known what is here of it. */
  isPrepared = false;
  /** The application has it, and has not read it to its end. */
  isGiven = false;
  /** The application does not want its bytes. */
  isSkipped = false;
  /** How many bytes were here before. */
  present = 0;
  /** Up to where bytes were asked for, and up to where the application has them. */
  requested = 0;
  delivered = 0;
  #hash = new Sha256();
  #digest: Uint8Array | undefined;

  constructor(number: number, entry: NamedEntry) {
    this.number = number;
    this.entry = entry;
  }

  /** Begins with what is here, of which no more counts than the file has. */
  async begin(present: PresentBytes | undefined): Promise<void> {
    const { size } = this.entry;
    for await (const bytes of slices(present, size)) {
      this.append(bytes);
    }
    this.present = this.delivered;
    this.requested = this.delivered;
    this.isPrepared = true;
    // Nothing was given to the application yet, so it need not know that it is another version.
    if (this.present === size && this.present > 0 && !this.isRight()) {
      this.restart();
    }
  }

  /** The same file without any of its bytes. */
  restart(): void {
    [this.present, this.requested, this.delivered] = [0, 0, 0];
    this.#hash = new Sha256();
    this.#digest = undefined;
  }

  append(bytes: Uint8Array): void {
    this.#hash.update(bytes);
    this.delivered += bytes.length;
  }

  /** Whether the bytes, which must all be here, are those of the digest. */
  isRight(): boolean {
    const digest = (this.#digest ??= this.#hash.finish());
    return digest.every((byte, index) => byte === this.entry.digest[index]);
  }
}

/** The first bytes of what is present or to be sent, one slice after the other. */
export async function* slices(present: PresentBytes | undefined, most: number): AsyncIterable<Uint8Array> {
  const length = Math.min(most, present === undefined ? 0 : sizeOf(present));
  for (let at = 0; at < length; at += SLICE) {
    yield await sliceOf(present as PresentBytes, at, Math.min(length, at + SLICE));
  }
}

export const sizeOf = (present: PresentBytes): number => (present instanceof Uint8Array ? present.length : present.size);

/** Some bytes. */
export async function sliceOf(present: PresentBytes, from: number, to: number): Promise<Uint8Array> {
  return present instanceof Uint8Array ? present.subarray(from, to) : new Uint8Array(await present.slice(from, to).arrayBuffer());
}
