/** What the sender says that it has, page by page. */

import { TransferError } from "./failure.js";
import { checkPath, comparePaths } from "./path.js";
import type { Entry, Page } from "./wire.js";

/** What a receiver takes. More ends the transfer. */
export interface Quotas {
  readonly maxFiles: number;
  readonly maxFileBytes: number;
  readonly maxBytes: number;
}

/** An entry whose path was checked. */
export interface NamedEntry extends Entry {
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
