/**
 * File transfer: receives the peer's files as streams, and sends files to the peer. This module is the receiving side.
 */

import { notConnected, RakwireError } from "./errors.js";
import { report } from "./events.js";
import type { PresentBytes } from "./files/manifest.js";
import { IncomingFile, Manifest } from "./files/manifest.js";
import { checkTransfer, Pacer } from "./files/send.js";
import type { Page, Request } from "./files/wire.js";
import { codeOfReason, decodeReply, encodeRequest, reasonOfCode, REPLY_ID, TransferError } from "./files/wire.js";
import { readInteger } from "./options.js";
import { attachUntilEnd, SendQueue } from "./plugin/connection.js";
import type { Connection, Message, SendOptions } from "./types.js";
import { MAX_TIMEOUT_MS } from "./types.js";
import type { WaitOptions } from "./waits.js";
import { deferred } from "./waits.js";

export { RakwireError } from "./errors.js";
export type { ErrorCode, RakwireErrorOptions } from "./errors.js";
export type { PresentBytes } from "./files/manifest.js";
export { sendFiles } from "./files/send.js";
export type { SendFilesOptions, SentFile } from "./files/send.js";
export { TransferError } from "./files/wire.js";
export type { TransferReason } from "./files/wire.js";

const MAX_FILES = 10_000;
const MAX_BYTES = 1024 ** 3;
const TIMEOUT_MS = 30_000;
const WINDOW = 32;
const CHUNK = 64 * 1_024;
const MAX_WINDOW = 0xffff;
const MAX_CHUNK = 1024 ** 2;
/** The maximum number of files that are prepared ahead of the file being read. */
const AHEAD = 64;

/** A file in the manifest of the sender. */
export interface FileEntry {
  /** The relative path, with `/` as separator. Joined to a directory, it stays inside the directory. */
  readonly path: string;
  readonly size: number;
  /** The SHA-256 of the whole file. */
  readonly digest: Uint8Array;
}

/** A received file. Read it before requesting the next one. Bytes that you do not read are not transferred. */
export interface ReceivedFile extends FileEntry {
  /** The number of bytes that were already present. The stream starts after them. */
  readonly offset: number;
  /**
   * The bytes from `offset` on. The stream closes if the SHA-256 of the whole file is correct, and otherwise fails. It
   * fails with `file-changed` if the bytes already present belong to another version; the file is then sent again from
   * the start.
   */
  readonly stream: ReadableStream<Uint8Array>;
  /** Reads the stream to its end. */
  bytes(): Promise<Uint8Array<ArrayBuffer>>;
}

/** The progress of a transfer. */
export interface FileProgress {
  /** The number of complete files. */
  readonly files: number;
  /** The number of bytes that were already present or have arrived. */
  readonly bytes: number;
  /** The total number of files in the sender's manifest; 0 until it is known. */
  readonly totalFiles: number;
  /** The total size of these files in bytes; 0 until it is known. */
  readonly totalBytes: number;
  /** Bytes received from the sender. */
  readonly received: number;
  /** Files that were already completely present. */
  readonly unchanged: number;
}

/** The limits of a receiver, and access to the data that it already has. */
export interface ReceiveOptions extends WaitOptions {
  /**
   * The maximum number of files. If the sender lists more, the transfer fails before any file is requested. Default:
   * 10,000.
   */
  maxFiles?: number;
  /** The maximum total size of all files in bytes. Default: 1 GiB. */
  maxBytes?: number;
  /** The maximum size of one file in bytes. Default: `maxBytes`. */
  maxFileBytes?: number;
  /** The transfer fails if requested data does not arrive within this time in milliseconds. Default: 30,000. */
  timeoutMs?: number;
  /** The maximum number of requests that are in progress or have unread data. Default: 32. */
  window?: number;
  /** The maximum number of bytes requested at a time. Default: 64 KiB. */
  chunkBytes?: number;
  /** The maximum number of bytes requested per second. Default: no limit. */
  maxBytesPerSecond?: number;
  /** Returns the first bytes of a file that are already present, from an interrupted transfer or an older version. */
  present?: (entry: FileEntry) => PresentBytes | undefined | Promise<PresentBytes | undefined>;
  onProgress?: (progress: FileProgress) => void;
  /** The delivery of requests. It must be reliable. */
  delivery?: SendOptions;
}

/** A requested range of bytes, and its data. */
interface Read {
  readonly number: number;
  readonly file: IncomingFile;
  readonly length: number;
  bytes?: Uint8Array;
}

/**
 * Receives all files of the peer. Iterating yields the files in the order of their paths. Leaving the loop cancels the
 * transfer.
 *
 * ```ts
 * for await (const { path, stream } of receiveFiles(connection)) {
 *   await stream.pipeTo(await createWritable(path));
 * }
 * ```
 *
 * @throws RakwireError with the code `bad-option`. The iteration throws a {@link TransferError}, `not-connected` or the
 * reason of the signal.
 */
export function receiveFiles(connection: Connection, options: ReceiveOptions = {}): FileTransfer {
  return new Transfer(connection, options);
}

/** A transfer in progress. */
export interface FileTransfer extends AsyncIterable<ReceivedFile> {
  readonly progress: FileProgress;
  /** Cancels the transfer and notifies the sender. */
  cancel(): void;
}

class Transfer implements FileTransfer {
  readonly #options: ReceiveOptions;
  readonly #manifest: Manifest;
  readonly #outgoing: SendQueue;
  readonly #pacer: Pacer;
  readonly #timeoutMs: number;
  readonly #detach: () => void;
  readonly #unlisten: () => void;
  #chunk: number;
  readonly #mostReads: number;
  #window: number;
  #files: IncomingFile[] = [];
  #reads: Read[] = [];
  #listing: number | undefined;
  #nextNumber = Math.floor(Math.random() * 2 ** 32);
  #isPreparing = false;
  #isFinishing = false;
  #changed = deferred<void>();
  #ended: { readonly error?: unknown } | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #done = { files: 0, bytes: 0, received: 0, unchanged: 0 };

  constructor(connection: Connection, options: ReceiveOptions) {
    checkTransfer(options, "maxFiles", "maxBytes", "maxFileBytes", "present");
    const { maxFiles = MAX_FILES, maxBytes = MAX_BYTES, maxFileBytes = maxBytes, signal } = options;
    this.#manifest = new Manifest({
      maxFiles: readInteger("maxFiles", maxFiles, 0, 0xffff_ffff),
      maxBytes: readInteger("maxBytes", maxBytes, 0, Number.MAX_SAFE_INTEGER),
      maxFileBytes: readInteger("maxFileBytes", maxFileBytes, 0, Number.MAX_SAFE_INTEGER),
    });
    this.#timeoutMs = readInteger("timeoutMs", options.timeoutMs ?? TIMEOUT_MS, 1, MAX_TIMEOUT_MS);
    this.#mostReads = readInteger("window", options.window ?? WINDOW, 1, MAX_WINDOW);
    this.#window = this.#mostReads;
    this.#pacer = new Pacer(options.maxBytesPerSecond, () => this.#request());
    this.#chunk = this.#pacer.chunk(readInteger("chunkBytes", options.chunkBytes ?? CHUNK, 1, MAX_CHUNK), 1);
    signal?.throwIfAborted();
    this.#options = options;
    this.#outgoing = new SendQueue(connection);
    const plugin = { ids: [REPLY_ID], onMessage: ({ bytes }: Message) => this.#onMessage(bytes) };
    this.#detach = attachUntilEnd(connection, plugin, () => this.#end({ error: notConnected() }));
    const onAbort = (): void => this.#fail(signal?.reason, "cancelled");
    signal?.addEventListener("abort", onAbort);
    this.#unlisten = () => signal?.removeEventListener("abort", onAbort);
    this.#request();
  }

  get progress(): FileProgress {
    const { files: totalFiles = 0, bytes: totalBytes = 0 } = this.#manifest.total ?? {};
    return { ...this.#done, totalFiles, totalBytes };
  }

  cancel(): void {
    this.#fail(new TransferError("cancelled"));
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<ReceivedFile, void, undefined> {
    try {
      for (let file = await this.#next(); file !== undefined; file = await this.#next()) {
        yield this.#give(file);
      }
    } finally {
      this.cancel();
    }
  }

  /** Returns the next file in order once it is prepared; `undefined` after the last one. */
  async #next(): Promise<IncomingFile | undefined> {
    this.#files.filter(({ isDelivered }) => isDelivered).forEach((file) => this.#skip(file));
    for (;;) {
      this.#throwIfFailed();
      const [file] = this.#files;
      if (this.#ended !== undefined) {
        return undefined;
      }
      if (file?.isPrepared) {
        return file;
      }
      const changed = this.#changed.promise;
      if (file === undefined && this.#manifest.isComplete) {
        this.#finish();
      }
      await changed;
    }
  }

  #give(file: IncomingFile): ReceivedFile {
    file.isDelivered = true;
    const { name, size, digest } = file.entry;
    const stream = new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          const bytes = await this.#take(file);
          if (bytes === undefined) {
            controller.close();
          } else {
            controller.enqueue(bytes);
          }
        },
        cancel: () => this.#skip(file),
      },
      { highWaterMark: 0 },
    );
    const bytes = async (): Promise<Uint8Array<ArrayBuffer>> => new Uint8Array(await new Response(stream as BodyInit).arrayBuffer());
    return { path: name, size, digest: digest.slice(), offset: file.present, stream, bytes };
  }

  /** Returns the next bytes of a file, or `undefined` at its end if the digest is correct. */
  async #take(file: IncomingFile): Promise<Uint8Array | undefined> {
    for (;;) {
      this.#throwIfFailed();
      if (file.isSkipped) {
        throw new TransferError("cancelled");
      }
      const read = this.#reads.find((other) => other.file === file);
      if (read?.bytes !== undefined) {
        this.#reads.splice(this.#reads.indexOf(read), 1);
        file.append(read.bytes);
        this.#request();
        return read.bytes;
      }
      if (file.delivered === file.entry.size) {
        this.#check(file);
        return undefined;
      }
      await this.#changed.promise;
    }
  }

  /** Verifies the first file once all its bytes are present. */
  #check(file: IncomingFile): void {
    const { size } = file.entry;
    if (file.isRight()) {
      this.#files.shift();
      this.#done.files += 1;
      this.#done.unchanged += file.present === size ? 1 : 0;
      this.#reportProgress();
      this.#request();
    } else if (file.present === 0) {
      const error = new TransferError("bad-digest");
      this.#fail(error);
      throw error;
    } else {
      this.#done.bytes -= size;
      file.restart();
      file.isDelivered = false;
      this.#request();
      throw new RakwireError("file-changed", "the bytes already present belong to another version; the file is received again from its beginning");
    }
  }

  #skip(file: IncomingFile): void {
    if (!file.isDelivered || file.isSkipped || !this.#files.includes(file)) {
      return;
    }
    file.isSkipped = true;
    this.#files = this.#files.filter((other) => other !== file);
    this.#reads = this.#reads.filter((read) => read.file !== file || read.bytes === undefined);
    this.#request();
    this.#wake();
  }

  /**
   * Notifies the sender that the transfer is complete. The application must not close the connection before this is
   * sent.
   */
  #finish(): void {
    if (!this.#isFinishing) {
      this.#isFinishing = true;
      const message = { bytes: encodeRequest({ kind: "done" }), options: this.#options.delivery ?? {} };
      this.#outgoing.push({ ...message, onSent: () => this.#end({}), onFailed: (error) => this.#end({ error }) });
    }
  }

  #onMessage(bytes: Uint8Array): void {
    try {
      const reply = decodeReply(bytes);
      switch (reply?.kind) {
        case "page":
          this.#onPage(reply);
          break;
        case "data":
          this.#onData(reply.number, reply.bytes);
          break;
        case "failed":
          return this.#end({ error: new TransferError(reasonOfCode(reply.code), true) });
        default:
          throw new TransferError("bad-message");
      }
      this.#request();
    } catch (error) {
      this.#fail(error);
    }
  }

  #onPage(page: Page): void {
    if (page.number !== this.#listing) {
      return;
    }
    this.#listing = undefined;
    this.#restartTimeout();
    const first = this.#manifest.listed;
    const entries = this.#manifest.take(page, AHEAD - this.#files.length);
    this.#chunk = Math.min(this.#chunk, page.chunk);
    this.#window = Math.min(this.#window, page.window);
    this.#files.push(...entries.map((entry, index) => new IncomingFile(first + index, entry)));
    this.#reportProgress();
    void this.#prepare();
  }

  #onData(number: number, bytes: Uint8Array): void {
    const read = this.#reads.find((other) => other.number === number && other.bytes === undefined);
    if (read === undefined) {
      return;
    }
    if (bytes.length !== read.length) {
      throw new TransferError("bad-message");
    }
    read.bytes = bytes;
    if (read.file.isSkipped) {
      this.#reads.splice(this.#reads.indexOf(read), 1);
    }
    this.#restartTimeout();
    this.#done.received += bytes.length;
    this.#done.bytes += bytes.length;
    this.#reportProgress();
  }

  /** Requests the bytes already present from the application, file by file. */
  async #prepare(): Promise<void> {
    if (this.#isPreparing) {
      return;
    }
    this.#isPreparing = true;
    try {
      for (let file = this.#unprepared; file !== undefined && this.#ended === undefined; file = this.#unprepared) {
        const { name: path, size, digest } = file.entry;
        await file.begin(await this.#options.present?.({ path, size, digest: digest.slice() }));
        this.#done.bytes += file.present;
        this.#request();
        this.#wake();
      }
    } catch (cause) {
      this.#fail(new TransferError("storage", false, { cause }));
    }
    this.#isPreparing = false;
  }

  get #unprepared(): IncomingFile | undefined {
    return this.#files.find(({ isPrepared }) => !isPrepared);
  }

  /** Sends all requests that the window and the rate limit allow. */
  #request(): void {
    while (this.#ended === undefined && this.#pacer.isReady()) {
      const request = this.#nextRequest();
      if (request === undefined) {
        return;
      }
      const isIdle = this.#timer === undefined;
      this.#nextNumber = (this.#nextNumber + 1) >>> 0;
      this.#pacer.passed(request.kind === "read" ? request.length : 0);
      this.#outgoing.push({
        bytes: encodeRequest(request),
        options: this.#options.delivery ?? {},
        onFailed: (error) => this.#end({ error }),
      });
      if (isIdle) {
        this.#restartTimeout();
      }
    }
  }

  /** Returns the next request. Manifest pages are requested before files, because they list the files. */
  #nextRequest(): Request | undefined {
    const number = this.#nextNumber;
    const room = AHEAD - this.#files.length;
    if (!this.#manifest.isComplete && this.#listing === undefined && room > 0) {
      this.#listing = number;
      return { kind: "list", number, first: this.#manifest.listed, count: room };
    }
    const file = this.#files.find(({ isPrepared, requested, entry }) => !isPrepared || requested < entry.size);
    if (file === undefined || !file.isPrepared || !this.#mayRead(file)) {
      return undefined;
    }
    const { requested: offset } = file;
    const length = Math.min(this.#chunk, file.entry.size - offset);
    file.requested += length;
    this.#reads.push({ number, file, length });
    return { kind: "read", number, file: file.number, offset, length };
  }

  #mayRead(file: IncomingFile): boolean {
    if (this.#reads.filter(({ bytes }) => bytes === undefined).length >= this.#window) {
      return false;
    }
    // Unread data of later files must not block the first file.
    const isStarved = file === this.#files[0] && !this.#reads.some((read) => read.file === file);
    return isStarved || this.#reads.length < this.#mostReads;
  }

  /** Restarts the timeout after data, or after the first request that follows a pause. */
  #restartTimeout(): void {
    clearTimeout(this.#timer);
    const isWaiting = this.#listing !== undefined || this.#reads.some(({ bytes }) => bytes === undefined);
    this.#timer = isWaiting ? setTimeout(() => this.#fail(new TransferError("timed-out")), this.#timeoutMs) : undefined;
  }

  #reportProgress(): void {
    this.#wake();
    try {
      this.#options.onProgress?.(this.progress);
    } catch (error) {
      report(error);
    }
  }

  /** Wakes everything that waits for a state change. */
  #wake(): void {
    this.#changed.resolve();
    this.#changed = deferred<void>();
  }

  #throwIfFailed(): void {
    if (this.#ended !== undefined && "error" in this.#ended) {
      throw this.#ended.error;
    }
  }

  #fail(error: unknown, reason = error instanceof TransferError ? error.reason : "storage"): void {
    if (this.#ended === undefined) {
      this.#end({ error });
      const bytes = encodeRequest({ kind: "failed", code: codeOfReason(reason) });
      this.#outgoing.push({ bytes, options: this.#options.delivery ?? {}, onFailed: () => undefined });
    }
  }

  #end(ended: { readonly error?: unknown }): void {
    if (this.#ended === undefined) {
      this.#ended = ended;
      this.#detach();
      this.#unlisten();
      this.#outgoing.clear();
      this.#pacer.stop();
      clearTimeout(this.#timer);
      [this.#files, this.#reads] = [[], []];
      this.#wake();
    }
  }
}
