/** The connection of an application. */

import type { ErrorCode } from "./errors.js";
import { RakwireError } from "./errors.js";
import { ClosedEvent, MessageArrivedEvent, ProgressMadeEvent } from "./events.js";
import { ReceiveQueue } from "./receive-queue.js";
import type { SessionEnd, SessionSettings } from "./session.js";
import { Session } from "./session.js";
import type {
  CloseCode,
  CloseInfo,
  Connection,
  ConnectionStats,
  Message,
  Outcome,
  Progress,
  SendOptions,
} from "./types.js";
import type { PeerClasses } from "./wasm.js";

interface Deferred<T> {
  promise: Promise<T>;
  resolve: (value: T) => void;
  reject: (error: unknown) => void;
}

function deferred<T>(): Deferred<T> {
  let resolve!: Deferred<T>["resolve"];
  let reject!: Deferred<T>["reject"];
  const promise = new Promise<T>((onResolve, onReject) => {
    resolve = onResolve;
    reject = onReject;
  });
  return { promise, resolve, reject };
}

/** A connection that starts to open when it is constructed; {@link opened} settles with the result. */
export class PeerConnection extends EventTarget implements Connection {
  readonly opened: Promise<void>;
  readonly closed: Promise<CloseInfo>;

  readonly #session: Session;
  readonly #opened = deferred<void>();
  readonly #closed = deferred<CloseInfo>();
  readonly #queue = new ReceiveQueue(() => this.#session.resume());
  #isOpen = false;
  #isClosing = false;
  #hasListener = false;

  constructor(classes: PeerClasses, settings: SessionSettings) {
    super();
    this.opened = this.#opened.promise;
    this.closed = this.#closed.promise;
    const connection = this;
    this.#session = new Session(classes, settings, {
      get hasRoom() {
        return connection.#isClosing || connection.#hasListener || connection.#hasRoom;
      },
      onOpen: () => this.#onOpen(),
      onMessage: (message) => this.#onMessage(message),
      onProgress: (progress) => this.#onProgress(progress),
      onEnd: (end) => this.#onEnd(end),
    });
  }

  send(bytes: Uint8Array, options: SendOptions = {}): void {
    this.#session.send(bytes, options);
  }

  async sendWithReceipt(bytes: Uint8Array, options: SendOptions = {}): Promise<Outcome> {
    return this.#session.sendWithReceipt(bytes, options);
  }

  messages(): AsyncIterableIterator<Message> {
    return this.#queue.iterate();
  }

  [Symbol.asyncIterator](): AsyncIterableIterator<Message> {
    return this.messages();
  }

  close(): Promise<CloseInfo> {
    if (!this.#isClosing) {
      this.#isClosing = true;
      this.#queue.drain();
      this.#session.disconnect();
    }
    return this.closed;
  }

  /** Cancels an attempt to connect. */
  cancel(): void {
    this.#session.cancel();
  }

  stats(): ConnectionStats {
    return this.#session.stats();
  }

  internalAddresses(): string[] {
    return this.#session.internalAddresses();
  }

  override addEventListener(
    type: string,
    listener: ((event: any) => void) | null,
    options?: AddEventListenerOptions | boolean,
  ): void {
    super.addEventListener(type, listener, options);
    if (type === "message" && !this.#hasListener) {
      this.#hasListener = true;
      queueMicrotask(() => {
        this.#dispatchQueued();
        this.#session.resume();
      });
    }
  }

  override removeEventListener(
    type: string,
    listener: ((event: any) => void) | null,
    options?: EventListenerOptions | boolean,
  ): void {
    super.removeEventListener(type, listener, options);
  }

  /** A receipt comes behind earlier messages, so while one is awaited, messages are taken without a reader. */
  get #hasRoom(): boolean {
    return !this.#queue.isFull || (this.#session.awaitsReceipt && !this.#queue.isOverByteLimit);
  }

  #onOpen(): void {
    this.#isOpen = true;
    this.#opened.resolve();
  }

  #onMessage(message: Message): void {
    if (this.#isClosing) {
      return;
    }
    this.#queue.push(message);
    if (this.#hasListener) {
      this.#dispatchQueued();
    }
  }

  #onProgress(progress: Progress): void {
    this.dispatchEvent(new ProgressMadeEvent(progress));
  }

  #dispatchQueued(): void {
    for (const message of this.#queue.drain()) {
      this.dispatchEvent(new MessageArrivedEvent(message));
    }
  }

  #onEnd({ code, reason, relayCode }: SessionEnd): void {
    const relay = relayCode === undefined ? {} : { relayCode };
    if (!this.#isOpen) {
      this.#opened.reject(new RakwireError(code as ErrorCode, reason, relay));
      return;
    }
    const info: CloseInfo = { code: code as CloseCode, reason, ...relay };
    this.#queue.close();
    this.#closed.resolve(info);
    this.dispatchEvent(new ClosedEvent(info));
  }
}
