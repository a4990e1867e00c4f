/** Opens connections, and implements the public connection class. */

import type { ErrorCode } from "./errors.js";
import { RakwireError } from "./errors.js";
import type { Listener } from "./events.js";
import { ConnectionEvent, guarded, guardedListener, isCapturing, isListener, ListenerSet } from "./events.js";
import {
  checkNames,
  readInteger,
  readSettings,
  READY_OPTIONS,
  RECEIPT_OPTIONS,
  SEND_OPTIONS,
  STATS_OPTIONS,
  WAIT_OPTIONS,
  withDeadline,
} from "./options.js";
import type { PeerSettings, SessionSettings } from "./options.js";
import type { Peer } from "./peer.js";
import { ReceiveQueue } from "./receive-queue.js";
import type { SessionEnd, SessionLike, SessionOwner, SessionWorker } from "./session.js";
import { Session } from "./session.js";
import { withPermission } from "./transport/local-network.js";
import type { RelayNotice } from "./transport/flow.js";
import type {
  CloseCode,
  CloseInfo,
  Connection,
  ConnectionStats,
  ConnectOptions,
  Message,
  Outcome,
  Progress,
  Protocol,
  ReadyOptions,
  RelayDrops,
  SendOptions,
  StatsOptions,
  TransportName,
} from "./types.js";
import { DEFAULT_TIMEOUT_MS, MAX_TIMEOUT_MS } from "./types.js";
import type { Wait, WaitOptions } from "./waits.js";
import { ASYNC_DISPOSE, beforeAbort, deferred, WaitList } from "./waits.js";
import type { Loaded, Wasm } from "./wasm.js";

/** Creates the protocol peer of a connection in WebAssembly. */
type CreatePeer = (rust: Loaded, settings: PeerSettings) => Peer;
/** A connection class. Constructing it starts opening the connection. */
type ConnectionClass<C extends PeerConnection> = new (open: (owner: SessionOwner) => SessionLike) => C;

/**
 * Opens a connection from user options, with the WebAssembly, connection class and peer factory of an entry. `only` is
 * set if the entry supports a single protocol.
 */
export async function connectWith(
  wasm: Wasm,
  Connection: ConnectionClass<PeerConnection>,
  create: CreatePeer,
  only: Protocol | undefined,
  url: string | URL,
  options: ConnectOptions,
): Promise<Connection> {
  return openWith(wasm, readSettings(url, options, only), options, Connection, create);
}

/** Opens a connection from checked settings. */
export async function openWith<C extends PeerConnection>(
  wasm: Wasm,
  settings: SessionSettings,
  options: ConnectOptions,
  Connection: ConnectionClass<C>,
  create: CreatePeer,
): Promise<C> {
  const { signal, timeoutMs = DEFAULT_TIMEOUT_MS, worker } = options;
  if (worker !== undefined && settings.transport.webSocket !== undefined) {
    throw new RakwireError("bad-option", "a worker has its own WebSocket; omit webSocket or worker");
  }
  const connecting = withDeadline(signal, timeoutMs, ["timeout", `no connection within ${timeoutMs} ms`], async (deadline) => {
    const loaded = await beforeAbort(deadline, wasm.load(options.wasm));
    const open = (owner: SessionOwner): SessionLike =>
      (worker as SessionWorker | undefined)?.open(loaded.module, settings, owner) ?? new Session(create(loaded, settings), settings, owner);
    for (;;) {
      const connection = await attempt(new Connection(open), settings.protocol, deadline);
      if (connection !== undefined) {
        return connection;
      }
    }
  });
  const { url, fingerprint } = settings.transport;
  return withPermission(connecting, url, fingerprint);
}

/**
 * Makes one connection attempt. Returns `undefined` if a second attempt may succeed: a server of the Game Protocol
 * ignores repeated requests from the same port, and a new WebSocket gets another port at the relay.
 */
async function attempt<C extends PeerConnection>(
  connection: C,
  protocol: Protocol,
  deadline: AbortSignal,
): Promise<C | undefined> {
  try {
    await beforeAbort(deadline, connection.opened);
    return connection;
  } catch (error) {
    connection.cancel();
    if (protocol === "game" && error instanceof RakwireError && error.code === "no-answer") {
      return undefined;
    }
    throw error;
  }
}

/** Shared default, because most messages are sent without options. */
const NO_OPTIONS: SendOptions = {};

/** A connection that starts opening when it is constructed. {@link opened} settles with the outcome. */
export class PeerConnection extends EventTarget implements Connection {
  readonly opened: Promise<void>;
  readonly closed: Promise<CloseInfo>;
  /** The receive queue, which plugins use. */
  readonly queue: ReceiveQueue;

  readonly #session: SessionLike;
  readonly #opened = deferred<void>();
  readonly #closed = deferred<CloseInfo>();
  /**
   * Pending `whenClosed` calls that have a signal. Chaining them to the promise itself would leak them until the close.
   */
  readonly #closeWaits = new WaitList<CloseInfo | void>();
  #closeInfo: CloseInfo | undefined;
  readonly #listeners = new ListenerSet();
  #isOpen = false;
  #isClosing = false;
  #discarded = 0;
  #relayDrops: RelayDrops = { toClient: {}, toServer: {} };
  #callback: ((message: Message) => void) | undefined;

  /** Calls `open` with the connection as the owner of the new session. */
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
    this.queue = new ReceiveQueue(listeners, () => this.#session.onRoom(), maxQueuedBytes);
    this.#session = open({
      get hasRoom() {
        return connection.#isClosing || connection.#hasRoom;
      },
      onConnected: (securePeer) => this.onConnected(securePeer),
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

  /** Cancels the attempt to connect. */
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
    // Queued messages are delivered in a microtask, so that the caller can add further listeners first.
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
    // Passed as an object, because Node 20 does not accept `true` as `options`.
    super.removeEventListener(type, this.#listeners.remove(listener, options) ?? null, { capture: isCapturing(options) });
    // Pending `receive` calls get the messages that would have gone to the listener.
    queueMicrotask(() => this.queue.deliver());
  }

  /** Receipts and plugin messages behind unread messages must arrive even if the application reads nothing. */
  get #hasRoom(): boolean {
    const { isFull, hasPlugins, isOverByteLimit } = this.queue;
    return !isFull || ((hasPlugins || this.#session.awaitsReceipt) && !isOverByteLimit);
  }

  /** Called with the verified public key of the server if the connection is secure. */
  protected onConnected(_securePeer: Uint8Array | undefined): void {
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
      // Handled like a listener: exceptions are reported, and the connection continues.
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

/**
 * A connection that refuses unknown options in every call. The entry for the Game Protocol alone omits these checks,
 * to stay small.
 */
export class CheckedConnection extends PeerConnection {
  override send(bytes: Uint8Array, options?: SendOptions): void {
    checkNames(options, SEND_OPTIONS);
    super.send(bytes, options);
  }

  override sendWithReceipt(bytes: Uint8Array, options?: SendOptions & WaitOptions): Promise<Outcome> {
    return checked(options, RECEIPT_OPTIONS, () => super.sendWithReceipt(bytes, options));
  }

  override ready(options?: ReadyOptions): Promise<void> {
    return checked(options, READY_OPTIONS, () => super.ready(options));
  }

  override receive(options?: WaitOptions): Promise<Message | undefined> {
    return checked(options, WAIT_OPTIONS, () => super.receive(options));
  }

  override messages(options?: WaitOptions): AsyncIterableIterator<Message> {
    checkNames(options, WAIT_OPTIONS);
    return super.messages(options);
  }

  override close(options?: WaitOptions): Promise<CloseInfo> {
    return checked(options, WAIT_OPTIONS, () => super.close(options));
  }

  override whenClosed(options?: WaitOptions): Promise<CloseInfo> {
    return checked(options, WAIT_OPTIONS, () => super.whenClosed(options));
  }

  override statistics(options?: StatsOptions): AsyncIterableIterator<ConnectionStats> {
    checkNames(options, STATS_OPTIONS);
    return super.statistics(options);
  }
}

/** Runs a call if all its options are known, and otherwise returns a rejected promise. */
function checked<T>(options: object | undefined, known: readonly string[], call: () => Promise<T>): Promise<T> {
  try {
    checkNames(options, known);
  } catch (error) {
    return Promise.reject(error as Error);
  }
  return call();
}
