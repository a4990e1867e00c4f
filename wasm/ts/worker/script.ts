/** The worker's side: runs the sessions of a page in a Web Worker. */

import type { RakwireError } from "../errors.js";
import { fromThrown } from "../errors.js";
import type { SessionSettings } from "../options.js";
import type { PeerStats, Rust } from "../rust.js";
import { describeStats, instantiate, peerClasses } from "../rust.js";
import { createSecurePeer } from "../security/connection.js";
import type { SessionEnd, SessionOwner } from "../session.js";
import { Session } from "../session.js";
import type { RelayNotice } from "../transport/flow.js";
import type { Message, Progress } from "../types.js";
import type { Outgoing, ToPage, ToWorker } from "./messages.js";
import { WINDOW, WINDOW_BYTES } from "./messages.js";

/** The interval in milliseconds at which the page receives statistics. */
const STATS_MS = 100;
/**
 * The time limit in milliseconds for a closing connection to accept the messages still queued. After that, Rust has 5 s
 * to deliver them.
 */
const CLOSE_MS = 5_000;
/** A length above that of any message. */
const BEYOND = 1 << 30;

type WithoutSession<T = ToPage> = T extends { session: number } ? Omit<T, "session"> : never;

/** The WebAssembly instances by entry number. */
const instances = new Map<number, Rust>();
const sessions = new Map<number, WorkerSession>();

function post(session: number, what: WithoutSession, transfer: Transferable[] = []): void {
  (self as unknown as Worker).postMessage({ session, ...what }, transfer);
}

/** A session that reports its events to the page. */
class WorkerSession implements SessionOwner {
  readonly #number: number;
  readonly #session: Session;
  readonly #statsTimer: ReturnType<typeof setInterval>;
  /** The remaining credit for posting messages to the page, in messages and bytes. */
  #room = WINDOW;
  #roomBytes = WINDOW_BYTES;
  #arrived: Message[] = [];
  /** Messages from the page; the first one waits until the connection accepts it. */
  readonly #waiting: Outgoing[] = [];
  /** Resolves when the connection has accepted all messages in `#waiting`. */
  #sent = Promise.resolve();
  #isOpen = false;
  #closeTimer: ReturnType<typeof setTimeout> | undefined;

  /** The offset of the page's clock from the worker's clock in milliseconds. */
  readonly #pageAheadMs: number;

  constructor(number: number, rust: Rust, settings: SessionSettings, timeOrigin: number) {
    this.#number = number;
    this.#pageAheadMs = performance.timeOrigin - timeOrigin;
    this.#session = new Session(createSecurePeer(rust, settings), settings, this);
    this.#statsTimer = setInterval(() => this.#postStats(), STATS_MS);
  }

  get hasRoom(): boolean {
    return this.#room > 0 && this.#roomBytes > 0;
  }

  onConnected(securePeer: Uint8Array | undefined): void {
    this.#isOpen = true;
    const { serverGuid, transport } = this.#session;
    const internalAddresses = this.#session.internalAddresses();
    post(this.#number, { type: "open", longest: this.#longest(), serverGuid, securePeer, internalAddresses, transport });
  }

  onMessage(message: Message): void {
    this.#room -= 1;
    this.#roomBytes -= message.bytes.length;
    this.#arrived.push(message);
    if (this.#arrived.length === 1) {
      queueMicrotask(() => this.#postMessages());
    }
  }

  onProgress(progress: Progress): void {
    post(this.#number, { type: "progress", progress });
  }

  onMtu(mtu: number): void {
    post(this.#number, { type: "mtu", mtu });
  }

  onInterrupted(): void {
    post(this.#number, { type: "interrupted" });
  }

  onResumed(): void {
    post(this.#number, { type: "resumed", transport: this.#session.transport });
  }

  onRelayNotice(notice: RelayNotice): void {
    post(this.#number, { type: "relay-notice", notice });
  }

  onEnd(end: SessionEnd): void {
    this.#postMessages();
    post(this.#number, { type: "end", end, stats: this.#stats() });
    this.#forget();
  }

  send(messages: readonly Outgoing[]): void {
    const isIdle = this.#waiting.length === 0;
    this.#waiting.push(...messages);
    if (isIdle) {
      this.#sent = this.#sendWaiting();
    }
  }

  addRoom(messages: number, bytes: number): void {
    this.#room += messages;
    this.#roomBytes += bytes;
    this.#session.onRoom();
  }

  disconnect(): void {
    const disconnect = (): void => this.#session.disconnect();
    this.#closeTimer ??= setTimeout(disconnect, CLOSE_MS);
    // Disconnects after the earlier messages of the page were sent.
    void this.#sent.then(disconnect);
  }

  leave(): void {
    this.#session.leave();
  }

  cancel(): void {
    this.#session.cancel();
    this.#forget();
  }

  #forget(): void {
    clearInterval(this.#statsTimer);
    clearTimeout(this.#closeTimer);
    sessions.delete(this.#number);
  }

  #postStats(): void {
    if (this.#isOpen) {
      const { bufferedAmount, transport } = this.#session;
      post(this.#number, { type: "stats", stats: this.#stats(), bufferedAmount, transport });
    }
  }

  /** Returns the statistics, with times on the page's clock. */
  #stats(): PeerStats {
    const stats = this.#session.stats();
    return stats.clockDifferenceMs === undefined
      ? stats
      : { ...stats, clockDifferenceMs: stats.clockDifferenceMs - this.#pageAheadMs };
  }

  #postMessages(): void {
    const messages = this.#arrived;
    if (messages.length > 0) {
      this.#arrived = [];
      post(this.#number, { type: "messages", messages }, messages.map(({ bytes }) => bytes.buffer as ArrayBuffer));
    }
  }

  /** Sends the queued messages, each when the connection accepts it. */
  async #sendWaiting(): Promise<void> {
    let [taken, bytes] = [0, 0];
    const postTaken = (): void => {
      if (taken > 0) {
        post(this.#number, { type: "taken", messages: taken, bytes });
        [taken, bytes] = [0, 0];
      }
    };
    for (let next = this.#waiting[0]; next !== undefined; next = this.#waiting[0]) {
      let error = this.#trySend(next);
      if (error?.code === "queue-full") {
        postTaken();
        error = await this.#whenReady();
        if (error === undefined) {
          continue;
        }
      }
      if (error !== undefined) {
        post(this.#number, { type: "refused", receipt: next.receipt, code: error.code, reason: error.message });
      }
      this.#waiting.shift();
      taken += 1;
      bytes += next.bytes.length;
    }
    postTaken();
  }

  #trySend(message: Outgoing): RakwireError | undefined {
    try {
      this.#send(message);
      return undefined;
    } catch (thrown) {
      return fromThrown(thrown);
    }
  }

  /**
   * Waits until the refused message would be accepted, including its receipt if it has one. Returns the error if it
   * would never be accepted.
   */
  #whenReady(): Promise<RakwireError | undefined> {
    return this.#session.ready({}).then(() => undefined, fromThrown);
  }

  #send({ bytes, options, receipt }: Outgoing): void {
    if (receipt === undefined) {
      this.#session.send(bytes, options);
      return;
    }
    void this.#session.sendForReceipt(bytes, options).then((outcome) => {
      // Messages that arrived before the outcome must be reported before it.
      this.#postMessages();
      post(this.#number, { type: "outcome", receipt, outcome });
    });
  }

  /** Returns the length in bytes of the longest message that can ever be sent. */
  #longest(): number {
    const fits = (length: number): boolean => {
      try {
        this.#session.checkLength(length);
        return true;
      } catch {
        return false;
      }
    };
    let [most, least] = [BEYOND, 0];
    while (most - least > 1) {
      const middle = Math.floor((most + least) / 2);
      if (fits(middle)) {
        least = middle;
      } else {
        most = middle;
      }
    }
    return least;
  }
}

function instanceOf(entry: number, module: WebAssembly.Module): Rust {
  const rust = instances.get(entry) ?? instantiate(module, peerClasses);
  instances.set(entry, rust);
  return rust;
}

function open(number: number, rust: () => Rust, settings: SessionSettings, timeOrigin: number): void {
  try {
    sessions.set(number, new WorkerSession(number, rust(), settings, timeOrigin));
  } catch (thrown) {
    const { code, message: reason } = fromThrown(thrown);
    post(number, { type: "end", end: { code, reason }, stats: describeStats([], []) });
  }
}

self.addEventListener("message", ({ data }: MessageEvent<ToWorker>) => {
  const session = sessions.get(data.session);
  switch (data.type) {
    case "open":
      open(data.session, () => instanceOf(data.entry, data.module), data.settings, data.timeOrigin);
      break;
    case "send":
      session?.send(data.messages);
      break;
    case "room":
      session?.addRoom(data.messages, data.bytes);
      break;
    case "disconnect":
      session?.disconnect();
      break;
    case "leave":
      session?.leave();
      break;
    case "cancel":
      session?.cancel();
      break;
  }
});
