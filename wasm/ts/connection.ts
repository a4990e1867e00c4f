/** The connection as an application sees it. */

import type { ErrorCode } from "./errors.js";
import { RakwireError } from "./errors.js";
import { ClosedEvent, MessageArrivedEvent, ProgressMadeEvent } from "./events.js";
import { Inbox } from "./inbox.js";
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

interface Settle<T> {
  promise: Promise<T>;
  resolve: (value: T) => void;
  reject: (error: unknown) => void;
}

function settle<T>(): Settle<T> {
  let resolve!: Settle<T>["resolve"];
  let reject!: Settle<T>["reject"];
  const promise = new Promise<T>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}

/** A connection that opens as soon as it is made; {@link opened} says what comes of it. */
export class PeerConnection extends EventTarget implements Connection {
  readonly opened: Promise<void>;
  readonly closed: Promise<CloseInfo>;

  readonly #session: Session;
  readonly #opened = settle<void>();
  readonly #closed = settle<CloseInfo>();
  readonly #inbox = new Inbox(() => this.#session.resume());
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
    return this.#inbox.read();
  }

  [Symbol.asyncIterator](): AsyncIterableIterator<Message> {
    return this.messages();
  }

  close(): Promise<CloseInfo> {
    if (!this.#isClosing) {
      this.#isClosing = true;
      this.#inbox.takeAll();
      this.#session.disconnect();
    }
    return this.closed;
  }

  /** Gives up an attempt to connect. */
  cancel(): void {
    this.#session.cancel();
  }

  stats(): ConnectionStats {
    return this.#session.stats();
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
        this.#tellWaiting();
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

  /** Receipts come behind the messages before them, so whoever waits for one must not wait for a reader. */
  get #hasRoom(): boolean {
    return !this.#inbox.isFull || (this.#session.awaitsReceipt && !this.#inbox.isOverfull);
  }

  #onOpen(): void {
    this.#isOpen = true;
    this.#opened.resolve();
  }

  #onMessage(message: Message): void {
    if (this.#isClosing) {
      return;
    }
    this.#inbox.put(message);
    if (this.#hasListener) {
      this.#tellWaiting();
    }
  }

  #onProgress(progress: Progress): void {
    this.dispatchEvent(new ProgressMadeEvent(progress));
  }

  #tellWaiting(): void {
    for (const message of this.#inbox.takeAll()) {
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
    this.#inbox.close();
    this.#closed.resolve(info);
    this.dispatchEvent(new ClosedEvent(info));
  }
}
