/** The connection of an application. */

import { ASYNC_DISPOSE } from "./dispose.js";
import type { ErrorCode } from "./errors.js";
import { RakwireError } from "./errors.js";
import { ConnectionEvent } from "./events.js";
import type { Listener } from "./listeners.js";
import { guardedListener, isCapturing, isListener, ListenerSet } from "./listeners.js";
import { MAX_TIMEOUT_MS, readInteger } from "./options.js";
import { guarded } from "./plugin/report.js";
import { ReceiveQueue } from "./receive-queue.js";
import type { SessionEnd, SessionLike, SessionOwner } from "./session.js";
import type { RelayNotice } from "./transport/transport.js";
import type {
  CloseCode,
  CloseInfo,
  Connection,
  ConnectionStats,
  Message,
  Outcome,
  Progress,
  ReadyOptions,
  RelayDrops,
  SendOptions,
  StatsOptions,
  TransportName,
} from "./types.js";
import type { Wait, WaitOptions } from "./waits.js";
import { deferred, WaitList } from "./waits.js";

/** Made once, as many messages are sent without options. */
const NO_OPTIONS: SendOptions = {};

/** A connection that starts to open when it is constructed; {@link opened} settles with the result. */
export class PeerConnection extends EventTarget implements Connection {
  readonly opened: Promise<void>;
  readonly closed: Promise<CloseInfo>;
  /** Plugins reach it here. */
  readonly queue: ReceiveQueue;

  readonly #session: SessionLike;
  readonly #opened = deferred<void>();
  readonly #closed = deferred<CloseInfo>();
  /** Those that wait for the end for a limited time: what waits for the promise itself does so until the end. */
  readonly #closeWaits = new WaitList<CloseInfo | void>();
  #closeInfo: CloseInfo | undefined;
  readonly #listeners = new ListenerSet();
  #isOpen = false;
  #isClosing = false;
  #discarded = 0;
  #relayDrops: RelayDrops = { toClient: {}, toServer: {} };
  #callback: ((message: Message) => void) | undefined;

  /** The session calls its owner from now on. */
  constructor(open: (owner: SessionOwner) => SessionLike, maxQueuedBytes?: number) {
    super();
    this.opened = this.#opened.promise;
    this.closed = this.#closed.promise;
    const connection = this;
    const listeners = {
      get isEmpty() {
        return connection.#listeners.isEmpty && connection.#callback === undefined;
      },
      dispatch: (message: Message) => this.#dispatch(message),
    };
    this.queue = new ReceiveQueue(listeners, () => this.#session.resume(), maxQueuedBytes);
    this.#session = open({
      get hasRoom() {
        return connection.#isClosing || connection.#hasRoom;
      },
      onOpen: (securePeer) => this.onOpen(securePeer),
      onMessage: (message) => this.#onMessage(message),
      onProgress: (progress) => this.#onProgress(progress),
      onMtu: (mtu) => this.dispatchEvent(new ConnectionEvent("mtu", { mtu })),
      onInterrupted: () => void this.dispatchEvent(new ConnectionEvent("interrupted", {})),
      onResumed: () => void this.dispatchEvent(new ConnectionEvent("resumed", {})),
      onRelayNotice: (notice) => this.#onRelayNotice(notice),
      onEnd: (end) => this.#onEnd(end),
    });
  }

  send(bytes: Uint8Array, options: SendOptions = NO_OPTIONS): void {
    this.#session.send(bytes, options);
  }

  async sendWithReceipt(bytes: Uint8Array, options: SendOptions & WaitOptions = {}): Promise<Outcome> {
    return this.#session.sendWithReceipt(bytes, options);
  }

  async ready(options: ReadyOptions = {}): Promise<void> {
    return this.#session.ready(options);
  }

  async receive(options: WaitOptions = {}): Promise<Message | undefined> {
    return this.queue.receive(options.signal);
  }

  messages(options: WaitOptions = {}): AsyncIterableIterator<Message> {
    return this.queue.iterate(options.signal);
  }

  [Symbol.asyncIterator](): AsyncIterableIterator<Message> {
    return this.messages();
  }

  async close(options: WaitOptions = {}): Promise<CloseInfo> {
    if (!this.#isClosing) {
      this.#isClosing = true;
      this.#discarded += this.queue.drain().length;
      this.#session.disconnect();
    }
    return this.whenClosed(options);
  }

  async whenClosed({ signal }: WaitOptions = {}): Promise<CloseInfo> {
    return (await this.#waitForClose(signal).promise) as CloseInfo;
  }

  #waitForClose(signal: AbortSignal | undefined): Wait<CloseInfo | void> {
    const wait = this.#closeWaits.add(signal);
    if (this.#closeInfo !== undefined) {
      wait.resolve(this.#closeInfo);
    }
    return wait;
  }

  async [ASYNC_DISPOSE](): Promise<void> {
    await this.close();
  }

  /** Cancels an attempt to connect. */
  cancel(): void {
    this.#session.cancel();
  }

  stats(): ConnectionStats {
    return {
      ...this.#session.stats(),
      messagesQueued: this.queue.length,
      messagesDiscarded: this.#discarded,
      relayDrops: this.#relayDrops,
    };
  }

  async *statistics({ intervalMs = 1_000, signal }: StatsOptions = {}): AsyncIterableIterator<ConnectionStats> {
    readInteger("intervalMs", intervalMs, 1, MAX_TIMEOUT_MS);
    while (this.#closeInfo === undefined) {
      yield this.stats();
      const pause = this.#waitForClose(signal);
      const timer = setTimeout(() => pause.resolve(), intervalMs);
      try {
        await pause.promise;
      } finally {
        clearTimeout(timer);
      }
    }
    yield this.stats();
  }

  get bufferedAmount(): number {
    return this.#session.bufferedAmount;
  }

  get maxMessageLength(): number {
    return this.#session.stats().maxMessageLength;
  }

  get transport(): TransportName | undefined {
    return this.#session.transport;
  }

  get onMessage(): ((message: Message) => void) | undefined {
    return this.#callback;
  }

  set onMessage(callback: ((message: Message) => void) | undefined) {
    this.#callback = callback;
    queueMicrotask(() => this.queue.deliver());
  }

  internalAddresses(): string[] {
    return this.#session.internalAddresses();
  }

  get serverGuid(): bigint | undefined {
    return this.#session.serverGuid;
  }

  override addEventListener(
    type: string,
    listener: Listener | null,
    options?: AddEventListenerOptions | boolean,
  ): void {
    if (!isListener(listener)) {
      super.addEventListener(type, listener, options);
      return;
    }
    if (type !== "message") {
      super.addEventListener(type, guardedListener(listener), options);
      return;
    }
    super.addEventListener(type, this.#listeners.add(listener, options), options);
    // What is queued follows once the caller has added its other listeners.
    queueMicrotask(() => this.queue.deliver());
  }

  override removeEventListener(
    type: string,
    listener: Listener | null,
    options?: EventListenerOptions | boolean,
  ): void {
    if (!isListener(listener)) {
      super.removeEventListener(type, listener, options);
      return;
    }
    if (type !== "message") {
      super.removeEventListener(type, guardedListener(listener), { capture: isCapturing(options) });
      return;
    }
    // Node 20 does not know `true` for `options` here.
    super.removeEventListener(type, this.#listeners.remove(listener, options) ?? null, { capture: isCapturing(options) });
    // Those who have asked for a message get what the listener would have got.
    queueMicrotask(() => this.queue.deliver());
  }

  /** What comes behind earlier messages must not wait for their reader: a receipt, or what is for a plugin. */
  get #hasRoom(): boolean {
    const { isFull, hasPlugins, isOverByteLimit } = this.queue;
    return !isFull || ((hasPlugins || this.#session.awaitsReceipt) && !isOverByteLimit);
  }

  /** A secure connection learns whom the server has shown to be. */
  protected onOpen(_securePeer: Uint8Array | undefined): void {
    this.#isOpen = true;
    this.#opened.resolve();
  }

  #onMessage(message: Message): void {
    if (this.#isClosing) {
      this.#discarded += 1;
    } else {
      this.queue.push(message);
    }
  }

  #dispatch(message: Message): void {
    if (!this.#listeners.isEmpty) {
      this.dispatchEvent(new ConnectionEvent("message", { message }));
    }
    if (this.#callback !== undefined) {
      // As a listener: what it throws is reported, and the connection goes on.
      guarded(this.#callback, message);
    }
  }

  #onProgress(progress: Progress): void {
    this.dispatchEvent(new ConnectionEvent("progress", { progress }));
  }

  #onRelayNotice(notice: RelayNotice): void {
    this.#relayDrops = notice.drops ?? this.#relayDrops;
    this.dispatchEvent(new ConnectionEvent(notice.drops ? "relaydrops" : "draining", notice));
  }

  #onEnd({ code, reason, relayCode }: SessionEnd): void {
    const relay = relayCode === undefined ? {} : { relayCode };
    if (!this.#isOpen) {
      this.#opened.reject(new RakwireError(code as ErrorCode, reason, relay));
      return;
    }
    const info: CloseInfo = { code: code as CloseCode, reason, ...relay };
    this.queue.close();
    this.#closeInfo = info;
    this.#closed.resolve(info);
    this.#closeWaits.all().forEach((wait) => wait.resolve(info));
    this.dispatchEvent(new ConnectionEvent("close", { info }));
  }
}
