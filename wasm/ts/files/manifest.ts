/**
 * The files of a transfer: the manifest, which the sender transmits in pages, and the received bytes and digest of each
 * file.
 */

import type { Entry, Page } from "./wire.js";
import { TransferError } from "./wire.js";

/** The limits of a receiver. A transfer that exceeds one fails. */
export interface Quotas {
  readonly maxFiles: number;
  readonly maxFileBytes: number;
  readonly maxBytes: number;
}

/** An entry with a checked path. */
interface NamedEntry extends Entry {
  readonly name: string;
}

/** Checks manifest pages for consistency and against the quotas. */
export class Manifest {
  readonly #quotas: Quotas;
  #lastPath = new Uint8Array(0);
  #bytes = 0;
  /** The number of files listed so far. */
  listed = 0;
  total: { readonly files: number; readonly bytes: number } | undefined;

  constructor(quotas: Quotas) {
    this.#quotas = quotas;
  }

  get isComplete(): boolean {
    return this.listed === this.total?.files;
  }

  /** Returns the entries of the next page, at most `most`. Throws a {@link TransferError} if the page is invalid. */
  take(page: Page, most: number): NamedEntry[] {
    this.total ??= this.#readTotals(page);
    const { files, bytes } = this.total;
    if (page.files !== files || page.bytes !== bytes || page.first !== this.listed) {
      throw new TransferError("bad-manifest");
    }
    if (page.entries.length > most) {
      throw new TransferError("bad-message");
    }
    const entries = page.entries.map((entry) => this.#readEntry(entry, files, bytes));
    // An empty page would be requested forever.
    if (this.isComplete ? this.#bytes !== bytes : entries.length === 0) {
      throw new TransferError("bad-manifest");
    }
    return entries;
  }

  #readTotals({ files, bytes, chunk, window }: Page): { files: number; bytes: number } {
    if (files > this.#quotas.maxFiles) {
      throw new TransferError("too-many-files");
    }
    if (bytes > this.#quotas.maxBytes) {
      throw new TransferError("too-many-bytes");
    }
    if (chunk === 0 || window === 0) {
      throw new TransferError("bad-message");
    }
    return { files, bytes };
  }

  #readEntry(entry: Entry, files: number, bytes: number): NamedEntry {
    const name = checkPath(entry.path);
    if (name === undefined) {
      throw new TransferError("bad-path");
    }
    // Strictly ascending paths contain no duplicates.
    const isInOrder = comparePaths(this.#lastPath, entry.path) < 0;
    this.#bytes += entry.size;
    if (!isInOrder || this.listed >= files || this.#bytes > bytes) {
      throw new TransferError("bad-manifest");
    }
    if (entry.size > this.#quotas.maxFileBytes) {
      throw new TransferError("file-too-long");
    }
    this.#lastPath = entry.path.slice();
    this.listed += 1;
    return { ...entry, name };
  }
}

/** The maximum length of a path in bytes. */
const MAX_PATH = 255;

/**
 * Returns the path if it is valid. A valid path is relative, has 1 to 255 bytes of UTF-8, and uses `/` as separator. It
 * has no empty, `.` or `..` components, and no backslashes, colons or control characters, which some systems interpret.
 */
export function checkPath(bytes: Uint8Array): string | undefined {
  if (bytes.length > MAX_PATH) {
    return undefined;
  }
  try {
    const path = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    const isName = (part: string): boolean => part !== "" && part !== "." && part !== "..";
    return !/[\p{Cc}\\:]/u.test(path) && path.split("/").every(isName) ? path : undefined;
  } catch {
    return undefined;
  }
}

/** Compares two paths bytewise. Negative if `a` comes first. */
export function comparePaths(a: Uint8Array, b: Uint8Array): number {
  const shared = Math.min(a.length, b.length);
  for (let index = 0; index < shared; index++) {
    if (a[index] !== b[index]) {
      return (a[index] as number) - (b[index] as number);
    }
  }
  return a.length - b.length;
}

/** The number of bytes read from a blob at a time. */
const SLICE = 256 * 1_024;

/** The first bytes of a file that are already present. */
export type PresentBytes = Uint8Array | Blob;

/** A file being received: the bytes present and the digest so far. */
export class IncomingFile {
  readonly entry: NamedEntry;
  readonly number: number;
  /** True once the application has provided the bytes already present. */
  isPrepared = false;
  /** True while the application has the file and has not read it to its end. */
  isDelivered = false;
  /** True if the application does not need the bytes. */
  isSkipped = false;
  /** The number of bytes that were already present. */
  present = 0;
  /** The end offset of the bytes requested from the sender. */
  requested = 0;
  /** The end offset of the bytes delivered to the application. */
  delivered = 0;
  #hash = new Sha256();
  #digest: Uint8Array | undefined;

  constructor(number: number, entry: NamedEntry) {
    this.number = number;
    this.entry = entry;
  }

  /** Starts with the bytes already present, truncated to the size of the file. */
  async begin(present: PresentBytes | undefined): Promise<void> {
    const { size } = this.entry;
    for await (const bytes of slices(present, size)) {
      this.append(bytes);
    }
    this.present = this.delivered;
    this.requested = this.delivered;
    this.isPrepared = true;
    // The application has received nothing yet, so a wrong version of the bytes can be replaced silently.
    if (this.present === size && this.present > 0 && !this.isRight()) {
      this.restart();
    }
  }

  /** Restarts the file from its first byte. */
  restart(): void {
    [this.present, this.requested, this.delivered] = [0, 0, 0];
    this.#hash = new Sha256();
    this.#digest = undefined;
  }

  append(bytes: Uint8Array): void {
    this.#hash.update(bytes);
    this.delivered += bytes.length;
  }

  /** Returns true if the digest is correct. Requires that all bytes are present. */
  isRight(): boolean {
    const digest = (this.#digest ??= this.#hash.finish());
    return digest.every((byte, index) => byte === this.entry.digest[index]);
  }
}

/** Yields the first `most` bytes in slices. */
export async function* slices(present: PresentBytes | undefined, most: number): AsyncIterable<Uint8Array> {
  const length = Math.min(most, present === undefined ? 0 : sizeOf(present));
  for (let at = 0; at < length; at += SLICE) {
    yield await sliceOf(present as PresentBytes, at, Math.min(length, at + SLICE));
  }
}

export const sizeOf = (present: PresentBytes): number => (present instanceof Uint8Array ? present.length : present.size);

/** Reads a range of bytes. */
export async function sliceOf(present: PresentBytes, from: number, to: number): Promise<Uint8Array> {
  return present instanceof Uint8Array ? present.subarray(from, to) : new Uint8Array(await present.slice(from, to).arrayBuffer());
}

const BLOCK = 64;
const ROUNDS = 64;
/** The minimum padding of the last block in bytes: 0x80, and the length in bits as a 64-bit number. */
const TAIL = 9;

/** Returns the first fractional bits of roots of the first primes, the constants of the algorithm. */
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

/**
 * Computes SHA-256 incrementally, for which pages have no API. `@noble/hashes` would add 1.9 KB with gzip, a quarter of
 * the entry.
 */
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

  /** Returns the digest. No bytes may be added afterwards. */
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
