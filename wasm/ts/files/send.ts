/** File transfer: the sending side. */

import { notConnected, RakwireError } from "../errors.js";
import { checkNames, readInteger, SEND_OPTIONS, WAIT_OPTIONS } from "../options.js";
import { attachUntilEnd, SendQueue } from "../plugin/connection.js";
import type { Connection, Message, SendOptions } from "../types.js";
import { MAX_TIMEOUT_MS } from "../types.js";
import type { WaitOptions } from "../waits.js";
import { deferred } from "../waits.js";
import { checkPath, comparePaths, Sha256, sizeOf, sliceOf, slices } from "./manifest.js";
import type { Entry, Reply, Request } from "./wire.js";
import { codeOfReason, DATA_HEADER, decodeRequest, encodeReply, reasonOfCode, REQUEST_ID, TransferError } from "./wire.js";

const WINDOW = 32;
const CHUNK = 32 * 1_024;
/** The minimum chunk size in bytes. It fits a page with the longest entry. */
const MIN_CHUNK = 512;
const MAX_CHUNK = 1024 ** 2;
const MAX_WINDOW = 0xffff - 1;
/** The size in bytes of a manifest page without entries. */
const PAGE_HEADER = 28;
/** The size in bytes of a manifest entry without its path. */
const ENTRY = 41;
const TIMEOUT_MS = 120_000;

/** A file to send. */
export interface SentFile {
  /** The relative path, at most 255 bytes, with `/` as separator. */
  readonly path: string;
  readonly content: Uint8Array | Blob;
}

/** Options of sending files. */
export interface SendFilesOptions extends WaitOptions {
  /**
   * The time in milliseconds without progress until the transfer fails. Progress is a request of the receiver, a reply
   * accepted by the connection, or bytes read from a file. Pauses for `maxBytesPerSecond` do not count. A receiver
   * sends no requests while its application does not read, so choose a timeout above such pauses. Default: 120,000.
   */
  timeoutMs?: number;
  /** The maximum number of requests in progress. Default: 32. */
  window?: number;
  /** The maximum number of bytes per reply. Default: 32 KiB. */
  chunkBytes?: number;
  /**
   * The maximum rate of replies in bytes per second. At low rates replies become smaller, down to 512 bytes, to keep
   * sending four per second. Default: no limit.
   */
  maxBytesPerSecond?: number;
  /** Called with the number of bytes sent and the total size of all files. */
  onProgress?: (sent: number, total: number) => void;
  /** The delivery of replies. It must be reliable. */
  delivery?: SendOptions;
}

interface SourceFile extends Entry {
  readonly content: Uint8Array | Blob;
}

/**
 * Serves files to the peer, and resolves when the peer reports that it has received them. Each file is read once before
 * the transfer to compute its SHA-256; requests wait until then.
 *
 * @throws RakwireError with the code `bad-option` or `not-connected`; a {@link TransferError}, for example with the
 * reason `timed-out`; or the reason of the signal.
 */
export async function sendFiles(connection: Connection, files: Iterable<SentFile>, options: SendFilesOptions = {}): Promise<void> {
  const sender = new Sender(connection, options);
  try {
    await sender.run([...files]);
  } finally {
    sender.detach();
  }
}

class Sender {
  readonly #window: number;
  readonly #chunk: number;
  readonly #options: SendFilesOptions;
  readonly #outgoing: SendQueue;
  readonly #pacer: Pacer;
  readonly #ended = deferred<void>();
  readonly detach: () => void;
  #files: readonly SourceFile[] | undefined;
  #requests: Request[] = [];
  #isReplying = false;
  #isOver = false;
  #total = 0;
  #sent = 0;
  readonly #timeoutMs: number;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(connection: Connection, options: SendFilesOptions) {
    checkTransfer(options);
    this.#timeoutMs = readInteger("timeoutMs", options.timeoutMs ?? TIMEOUT_MS, 1, MAX_TIMEOUT_MS);
    this.#window = readInteger("window", options.window ?? WINDOW, 1, MAX_WINDOW);
    this.#pacer = new Pacer(options.maxBytesPerSecond, () => void this.#reply());
    this.#chunk = this.#pacer.chunk(readInteger("chunkBytes", options.chunkBytes ?? CHUNK, MIN_CHUNK, MAX_CHUNK), MIN_CHUNK);
    const { signal } = options;
    signal?.throwIfAborted();
    this.#options = options;
    this.#outgoing = new SendQueue(connection);
    const plugin = { ids: [REQUEST_ID], onMessage: ({ bytes }: Message) => this.#onMessage(bytes) };
    const detach = attachUntilEnd(connection, plugin, () => this.#end(notConnected()));
    const onAbort = (): void => this.#fail("cancelled", signal?.reason);
    signal?.addEventListener("abort", onAbort);
    this.detach = () => {
      detach();
      signal?.removeEventListener("abort", onAbort);
    };
  }

  async run(files: readonly SentFile[]): Promise<void> {
    this.#progress();
    this.#readFiles(files).then(
      (read) => {
        this.#files = read;
        this.#total = read.reduce((sum, { size }) => sum + size, 0);
        void this.#reply();
      },
      (error: unknown) => this.#fail("storage", error),
    );
    await this.#ended.promise;
  }

  async #readFiles(files: readonly SentFile[]): Promise<SourceFile[]> {
    const named = files.map(({ path, content }) => ({ path: readPath(path), content }));
    named.sort((a, b) => comparePaths(a.path, b.path));
    if (named.some(({ path }, index) => index > 0 && comparePaths((named[index - 1] as SourceFile).path, path) === 0)) {
      throw new RakwireError("bad-option", "two files have the same path");
    }
    const read: SourceFile[] = [];
    for (const { path, content } of named) {
      const hash = new Sha256();
      for await (const bytes of slices(content, sizeOf(content))) {
        this.#progress();
        hash.update(bytes);
      }
      read.push({ path, content, size: sizeOf(content), digest: hash.finish() });
    }
    return read;
  }

  #onMessage(bytes: Uint8Array): void {
    const request = decodeRequest(bytes);
    if (request !== undefined) {
      this.#progress();
    }
    switch (request?.kind) {
      case "list":
      case "read":
      case "find patch":
        // In addition to the window, one request for a manifest page is allowed.
        if (this.#requests.length > this.#window) {
          return this.#fail("too-many-requests");
        }
        this.#requests.push(request);
        return void this.#reply();
      case "done":
        return this.#end();
      case "failed":
        return this.#end(new TransferError(reasonOfCode(request.code), true));
    }
  }

  /** Answers requests in order, each as soon as the pacer and the connection allow it. */
  async #reply(): Promise<void> {
    if (this.#isReplying || this.#files === undefined) {
      return;
    }
    this.#isReplying = true;
    this.#progress();
    try {
      for (let request = this.#requests[0]; request !== undefined && !this.#isOver && this.#pacer.isReady(); request = this.#requests[0]) {
        const reply = await this.#replyTo(request, this.#files);
        if (this.#isOver) {
          return;
        }
        await this.#send(reply);
        this.#progress();
        this.#requests.shift();
        if (reply.kind === "data") {
          this.#sent += reply.bytes.length;
          this.#options.onProgress?.(this.#sent, this.#total);
        }
      }
    } catch (error) {
      this.#fail(error instanceof TransferError ? error.reason : "storage", error);
    }
    this.#isReplying = false;
    if (this.#requests.length > 0) {
      // The remaining requests wait for the pacer.
      clearTimeout(this.#timer);
    }
  }

  async #replyTo(request: Request, files: readonly SourceFile[]): Promise<Reply> {
    if (request.kind === "list") {
      return this.#page(request, files);
    }
    if (request.kind === "find patch") {
      // This side keeps no older versions of files.
      return { kind: "patch", number: request.number, patch: 0, size: 0 };
    }
    const file = request.kind === "read" ? files[request.file] : undefined;
    if (request.kind !== "read" || file === undefined) {
      throw new TransferError("unknown");
    }
    const { number, offset, length } = request;
    if (length === 0 || length > this.#chunk || offset + length > file.size) {
      throw new TransferError("unknown");
    }
    return { kind: "data", number, bytes: await sliceOf(file.content, offset, offset + length) };
  }

  /** Returns as many entries as were requested and fit. */
  #page({ number, first, count }: Extract<Request, { kind: "list" }>, files: readonly SourceFile[]): Reply {
    if (first > files.length || count === 0) {
      throw new TransferError("unknown");
    }
    let room = this.#chunk + DATA_HEADER - PAGE_HEADER;
    let last = first;
    for (const { path } of files.slice(first, first + count)) {
      room -= ENTRY + path.length;
      if (room < 0) {
        break;
      }
      last += 1;
    }
    const entries = files.slice(first, last);
    return { kind: "page", number, files: files.length, bytes: this.#total, chunk: this.#chunk, window: this.#window, first, entries };
  }

  async #send(reply: Reply): Promise<void> {
    const { promise, resolve, reject } = deferred<void>();
    const bytes = encodeReply(reply);
    this.#pacer.passed(bytes.length);
    this.#outgoing.push({ bytes, options: this.#options.delivery ?? {}, onSent: resolve, onFailed: reject });
    try {
      await promise;
    } catch (cause) {
      throw cause instanceof RakwireError && cause.code === "not-connected" ? cause : new TransferError("too-long", false, { cause });
    }
  }

  /** Restarts the timeout after progress. */
  #progress(): void {
    clearTimeout(this.#timer);
    if (!this.#isOver) {
      this.#timer = setTimeout(() => this.#fail("timed-out"), this.#timeoutMs);
    }
  }

  /** Fails the transfer. The reason is sent to the receiver as soon as possible, without delaying the caller. */
  #fail(reason: TransferError["reason"], error: unknown = new TransferError(reason)): void {
    if (!this.#isOver) {
      this.#end(error);
      this.#outgoing.clear();
      const bytes = encodeReply({ kind: "failed", code: codeOfReason(reason) });
      this.#outgoing.push({ bytes, options: this.#options.delivery ?? {}, onFailed: () => undefined });
    }
  }

  #end(error?: unknown): void {
    this.#isOver = true;
    this.#pacer.stop();
    clearTimeout(this.#timer);
    this.#requests = [];
    if (error === undefined) {
      this.#ended.resolve();
    } else {
      this.#ended.reject(error);
    }
  }
}

function readPath(path: string): Uint8Array {
  const bytes = new TextEncoder().encode(path);
  if (checkPath(bytes) !== path) {
    throw new RakwireError("bad-option", `a file must not have the path ${JSON.stringify(path)}`);
  }
  return bytes;
}

/** Throws if an option is neither an option of both senders and receivers, nor in `own`. */
export function checkTransfer(options: { delivery?: SendOptions }, ...own: string[]): void {
  checkNames(options, [...WAIT_OPTIONS, "timeoutMs", "window", "chunkBytes", "maxBytesPerSecond", "onProgress", "delivery", ...own]);
  checkNames(options.delivery, SEND_OPTIONS);
}

/** The maximum unused time that counts as credit, in milliseconds. */
const BURST_MS = 100;
/** A rate limit reduces the chunk size to send at least this number per second, so that the peer does not time out. */
const CHUNKS_PER_SECOND = 4;

/** Limits the sending rate. */
export class Pacer {
  readonly #bytesPerSecond: number;
  readonly #continue: () => void;
  #readyAt = -Infinity;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** Calls `onReady` when bytes may be sent again, after {@link isReady} returned false. */
  constructor(bytesPerSecond: number | undefined, onReady: () => void) {
    this.#bytesPerSecond = bytesPerSecond === undefined ? Infinity : readInteger("maxBytesPerSecond", bytesPerSecond, 1, Number.MAX_SAFE_INTEGER);
    this.#continue = onReady;
  }

  /** Returns how many of these bytes may be sent at a time, at least `least`. */
  chunk(bytes: number, least: number): number {
    return Math.min(bytes, Math.max(least, Math.floor(this.#bytesPerSecond / CHUNKS_PER_SECOND)));
  }

  isReady(): boolean {
    const waitMs = this.#readyAt - performance.now();
    this.stop();
    if (waitMs > 0) {
      this.#timer = setTimeout(this.#continue, waitMs);
    }
    return waitMs <= 0;
  }

  passed(bytes: number): void {
    const now = performance.now();
    const begin = now - this.#readyAt <= BURST_MS ? this.#readyAt : now;
    this.#readyAt = begin + (1_000 * bytes) / this.#bytesPerSecond;
  }

  /** Cancels the pending `onReady` callback. */
  stop(): void {
    clearTimeout(this.#timer);
  }
}
