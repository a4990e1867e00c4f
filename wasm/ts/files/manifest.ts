/** The files of a transfer: what the sender says that it has, page by page, and what is here of each, with its digest so far. */

import type { Entry, Page } from "./wire.js";
import { TransferError } from "./wire.js";

/** What a receiver takes. More ends the transfer. */
export interface Quotas {
  readonly maxFiles: number;
  readonly maxFileBytes: number;
  readonly maxBytes: number;
}

/** An entry whose path was checked. */
interface NamedEntry extends Entry {
  readonly name: string;
}

/** Checks pages against each other and against the quotas. */
export class Manifest {
  readonly #quotas: Quotas;
  #lastPath = new Uint8Array(0);
  #bytes = 0;
  /** How many files the pages so far have named. */
  listed = 0;
  total: { readonly files: number; readonly bytes: number } | undefined;

  constructor(quotas: Quotas) {
    this.#quotas = quotas;
  }

  get isComplete(): boolean {
    return this.listed === this.total?.files;
  }

  /** The entries of the next page, of which there may be `most`; throws a {@link TransferError}. */
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
    // A page that names nothing would be asked for without end.
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
    // In order, no path comes twice.
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

/** The longest path in bytes. */
const MAX_PATH = 255;

/**
 * The path, if a file may have it: relative, in UTF-8, 1 to 255 bytes, with `/` between parts of which none is empty, `.` or
 * `..`, and without backslashes, colons and control characters, which mean something to some system.
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

/** Which of two paths is first as bytes: negative if `a` is. */
export function comparePaths(a: Uint8Array, b: Uint8Array): number {
  const shared = Math.min(a.length, b.length);
  for (let index = 0; index < shared; index++) {
    if (a[index] !== b[index]) {
      return (a[index] as number) - (b[index] as number);
    }
  }
  return a.length - b.length;
}

/** How many bytes of a blob are read at a time. */
const SLICE = 256 * 1_024;

/** What is here of a file, from its beginning on. */
export type PresentBytes = Uint8Array | Blob;

/** A file on its way: what is here of it, and its digest so far. */
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

/**
 * SHA-256 of bytes that come one after the other, which no platform offers to pages. That of `@noble/hashes` takes 1.9 KB more with gzip,
 * a quarter of the entry.
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
