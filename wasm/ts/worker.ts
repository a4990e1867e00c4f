/** The page's side of a Web Worker that runs the protocol and transport of connections. */

import source from "../pkg/worker-source.js";
import { notConnected, RakwireError } from "./errors.js";
import { report } from "./events.js";
import type { SessionSettings } from "./options.js";
import { onPageLeft, PAGE_LEFT } from "./page.js";
import type { PeerStats } from "./rust.js";
import { describeStats } from "./rust.js";
import { checkBytes, FIRST_ALLOWED_ID, readDelivery, WaitingSenders, withReceipt } from "./sending.js";
import type { SessionEnd, SessionLike, SessionOwner, SessionWorker } from "./session.js";
import type { Outcome, PeerWorker, Protocol, ReadyOptions, SendOptions, TransportName } from "./types.js";
import type { Deferred, WaitOptions } from "./waits.js";
import { ASYNC_DISPOSE, beforeAbort, deferred, WaitList } from "./waits.js";
import type { Outgoing, ToPage, ToWorker } from "./worker/messages.js";
import { MAX_UNACCEPTED_BYTES, refusal } from "./worker/messages.js";

export type { PeerWorker } from "./types.js";

/**
 * The time limit for closing a worker in milliseconds. Its connections close within 10 s, so a worker that takes longer
 * hangs.
 */
const CLOSE_MS = 15_000;
/** The interval of liveness checks in milliseconds. A healthy worker sends statistics ten times a second. */
const CHECK_MS = 5_000;
/**
 * The number of consecutive checks without a message after which the worker counts as hung. Time is not measured,
 * because a page that was suspended runs a check before it receives the queued messages.
 */
const MAX_MISSED_CHECKS = 3;
/**
 * The time in milliseconds for which leaving a page blocks so that the worker can send its last datagrams. It needs a
 * few milliseconds, or tens of them on a busy machine.
 */
const LEAVE_MS = 50;
/** The bytes counted per message in addition to its length. */
const OVERHEAD = 64;

type Command<T = ToWorker> = T extends { session: number } ? Omit<T, "session"> : never;
/** Posts a command about a session to the worker. */
type Post = (command: Command, transfer?: Transferable[]) => void;

/** A worker that runs sessions. It starts with its first session. */
class WorkerThread implements SessionWorker {
  readonly #start: () => Worker;
  readonly #sessions = new Map<number, RemoteSession>();
  /** The compiled WebAssembly of each entry that has opened a connection in this worker. */
  readonly #modules: WebAssembly.Module[] = [];
  readonly #idle = new WaitList<void>();
  #worker: Worker | undefined;
  #stay: (() => void) | undefined;
  #last = 0;

  constructor(start: () => Worker) {
    this.#start = start;
  }

  open(module: WebAssembly.Module, settings: SessionSettings, owner: SessionOwner): SessionLike {
    const number = ++this.#last;
    const post: Post = (command, transfer = []) => {
      this.#worker?.postMessage({ session: number, ...command }, transfer);
    };
    const session = new RemoteSession(post, settings, owner, () => this.#forget(number), () => this.#endAll("the worker does not respond"));
    this.#sessions.set(number, session);
    const isFragile = (): boolean => this.#leaving().some(({ transport }) => transport === "webtransport");
    this.#stay ??= onPageLeft(() => this.#leave(), isFragile);
    try {
      this.#worker ??= this.#listen(this.#start());
    } catch (cause) {
      this.#forget(number);
      throw new RakwireError("worker-unavailable", `the worker cannot be started: ${String(cause)}`, { cause });
    }
    const known = this.#modules.indexOf(module);
    const entry = known < 0 ? this.#modules.push(module) - 1 : known;
    post({ type: "open", entry, module, settings, timeOrigin: performance.timeOrigin });
    return session;
  }

  async close(): Promise<void> {
    while (this.#sessions.size > 0) {
      const { promise } = this.#idle.add(undefined);
      const timer = setTimeout(() => this.#endAll("the worker did not close its connections in time"), CLOSE_MS);
      this.#sessions.forEach((session) => session.close());
      await promise;
      clearTimeout(timer);
    }
    this.#endAll("the worker was closed");
  }

  async [ASYNC_DISPOSE](): Promise<void> {
    await this.close();
  }

  #forget(number: number): void {
    this.#sessions.delete(number);
    if (this.#sessions.size === 0) {
      this.#stay?.();
      this.#stay = undefined;
      this.#idle.all().forEach((wait) => wait.resolve());
    }
  }

  /** Returns the sessions to close when the page is left. */
  #leaving(): RemoteSession[] {
    return [...this.#sessions.values()].filter((session) => session.endsWithPage);
  }

  /** Makes the worker disconnect immediately when the page is left. */
  #leave(): void {
    const leaving = this.#leaving();
    leaving.forEach((session) => session.leave());
    const end = performance.now() + LEAVE_MS;
    while (leaving.length > 0 && performance.now() < end);
  }

  #listen(worker: Worker): Worker {
    worker.addEventListener("message", ({ data }: MessageEvent<ToPage>) => this.#sessions.get(data.session)?.handle(data));
    worker.addEventListener("error", (event) => {
      event.preventDefault();
      this.#endAll(`the worker failed: ${event.message ?? "its script cannot be loaded"}`);
    });
    return worker;
  }

  /** Terminates the worker and closes its remaining connections. */
  #endAll(reason: string): void {
    this.#worker?.terminate();
    this.#worker = undefined;
    this.#sessions.forEach((session) => session.end({ code: "worker-unavailable", reason }));
  }
}

/** A connection's session that runs in a worker. */
class RemoteSession implements SessionLike {
  readonly endsWithPage: boolean;
  readonly #post: Post;
  readonly #protocol: Protocol;
  readonly #owner: SessionOwner;
  readonly #onEnd: () => void;
  readonly #onHung: () => void;
  readonly #senders: WaitingSenders;
  readonly #receipts = new Map<number, Deferred<Outcome>>();
  #outgoing: Outgoing[] = [];
  #stats: PeerStats = describeStats([], []);
  /** Bytes queued for sending in the worker's connection. */
  #remoteBuffered = 0;
  /** Bytes posted to the worker that its connection has not accepted yet. */
  #unacceptedBytes = 0;
  #longest = 0;
  #lastReceipt = 0;
  /** Messages received from the worker for which the page has not yet granted new credit. */
  #withheld = 0;
  /** The number of bytes in these messages. */
  #withheldBytes = 0;
  #isOpen = false;
  #isOver = false;
  #closeTimer: ReturnType<typeof setTimeout> | undefined;
  #watch: ReturnType<typeof setInterval> | undefined;
  #missedChecks = 0;
  #guid: bigint | undefined;
  #transport: TransportName | undefined;
  #addresses: string[] = [];

  constructor(post: Post, { protocol, endWithPage = false }: SessionSettings, owner: SessionOwner, onEnd: () => void, onHung: () => void) {
    this.#post = post;
    this.#protocol = protocol;
    this.#owner = owner;
    this.endsWithPage = endWithPage;
    this.#onEnd = onEnd;
    this.#onHung = onHung;
    this.#senders = new WaitingSenders({ canSend: (length) => this.#canSend(length) });
  }

  get awaitsReceipt(): boolean {
    return this.#receipts.size > 0;
  }

  get bufferedAmount(): number {
    return this.#isOver ? 0 : this.#unacceptedBytes + this.#remoteBuffered;
  }

  get serverGuid(): bigint | undefined {
    return this.#isOpen ? this.#guid : undefined;
  }

  get transport(): TransportName | undefined {
    return this.#isOver ? undefined : this.#transport;
  }

  send(bytes: Uint8Array, options: SendOptions): void {
    this.#check(bytes, readDelivery(options, this.#protocol));
    this.#queue(bytes, options);
  }

  async sendWithReceipt(bytes: Uint8Array, options: SendOptions & WaitOptions): Promise<Outcome> {
    options.signal?.throwIfAborted();
    this.#check(bytes, withReceipt(readDelivery(options, this.#protocol), this.#protocol));
    const receipt = ++this.#lastReceipt;
    const outcome = deferred<Outcome>();
    this.#receipts.set(receipt, outcome);
    this.#queue(bytes, options, receipt);
    // Unread messages must not delay the outcome.
    this.#grantRoom();
    return beforeAbort(options.signal, outcome.promise);
  }

  ready(options: ReadyOptions): Promise<void> {
    return this.#senders.ready(options, this.#protocol);
  }

  disconnect(): void {
    this.#isOpen = false;
    this.#flush();
    this.#post({ type: "disconnect" });
    this.#closeTimer ??= setTimeout(() => {
      this.#post({ type: "cancel" });
      this.end({ code: "worker-unavailable", reason: "the worker did not close the connection in time" });
    }, CLOSE_MS);
  }

  leave(): void {
    this.#post({ type: "leave" });
    this.end(PAGE_LEFT);
  }

  /** Disconnects. A connection that was never open closes immediately. */
  close(): void {
    if (this.#longest > 0) {
      this.disconnect();
    } else {
      this.#post({ type: "cancel" });
      this.end({ code: "worker-unavailable", reason: "the worker was closed" });
    }
  }

  cancel(): void {
    if (!this.#isOver) {
      this.#isOver = true;
      clearInterval(this.#watch);
      this.#post({ type: "cancel" });
      this.#senders.end();
      this.#onEnd();
    }
  }

  onRoom(): void {
    this.#grantRoom();
  }

  stats(): PeerStats {
    return this.#stats;
  }

  internalAddresses(): string[] {
    return this.#isOver ? [] : this.#addresses;
  }

  /** Handles a message from the worker. */
  handle(event: ToPage): void {
    this.#missedChecks = 0;
    switch (event.type) {
      case "open":
        this.#watch = setInterval(() => this.#checkAlive(), CHECK_MS);
        this.#isOpen = true;
        this.#longest = event.longest;
        // The worker posts the other statistics at its next interval.
        this.#stats = { ...this.#stats, maxMessageLength: event.longest };
        this.#guid = event.serverGuid;
        this.#addresses = event.internalAddresses;
        this.#transport = event.transport;
        this.#owner.onConnected(event.securePeer);
        break;
      case "messages":
        this.#withheld += event.messages.length;
        event.messages.forEach((message) => {
          this.#withheldBytes += message.bytes.length;
          this.#owner.onMessage(message);
        });
        this.#grantRoom();
        break;
      case "taken":
        this.#unacceptedBytes -= event.bytes + OVERHEAD * event.messages;
        this.#senders.update();
        break;
      case "refused":
        this.#refuse(event.receipt, new RakwireError(event.code, event.reason));
        break;
      case "outcome":
        this.#receipts.get(event.receipt)?.resolve(event.outcome);
        this.#receipts.delete(event.receipt);
        break;
      case "progress":
        this.#owner.onProgress(event.progress);
        break;
      case "mtu":
        this.#owner.onMtu(event.mtu);
        break;
      case "stats":
        this.#stats = event.stats;
        this.#remoteBuffered = event.bufferedAmount;
        this.#transport = event.transport;
        break;
      case "interrupted":
        this.#transport = undefined;
        this.#owner.onInterrupted();
        break;
      case "resumed":
        this.#transport = event.transport;
        this.#owner.onResumed();
        break;
      case "relay-notice":
        this.#owner.onRelayNotice(event.notice);
        break;
      case "end":
        this.#stats = event.stats;
        this.end(event.end);
        break;
    }
  }

  /** Ends the session, and settles everything that is pending. */
  end(end: SessionEnd): void {
    if (this.#isOver) {
      return;
    }
    this.#isOver = true;
    this.#isOpen = false;
    clearTimeout(this.#closeTimer);
    clearInterval(this.#watch);
    this.#onEnd();
    // If this side closed the connection, the code is `local` even if the worker failed before the close was complete.
    const isClosedHere = this.#closeTimer !== undefined && end.code === "worker-unavailable";
    this.#receipts.forEach(({ resolve }) => resolve("unknown"));
    this.#receipts.clear();
    this.#senders.end();
    this.#owner.onEnd(isClosedHere ? { ...end, code: "local" } : end);
  }

  #checkAlive(): void {
    this.#missedChecks += 1;
    if (this.#missedChecks > MAX_MISSED_CHECKS) {
      this.#onHung();
    }
  }

  /** Grants the worker credit for further messages when the page can take them. */
  #grantRoom(): void {
    if (this.#withheld > 0 && this.#owner.hasRoom) {
      this.#post({ type: "room", messages: this.#withheld, bytes: this.#withheldBytes });
      [this.#withheld, this.#withheldBytes] = [0, 0];
    }
  }

  /** Throws the errors of `send` that the page can detect without the worker. */
  #check(bytes: Uint8Array, delivery: number): void {
    checkBytes(bytes);
    if (this.#isOver) {
      throw notConnected();
    }
    const { length } = bytes;
    if (length === 0) {
      throw refusal("empty-message");
    }
    if (this.#protocol === "raknet" && (bytes[0] as number) < FIRST_ALLOWED_ID) {
      throw refusal("reserved-id");
    }
    if (!this.#canSend(length)) {
      this.#senders.refused = { length, delivery };
      throw refusal("queue-full");
    }
  }

  #canSend(length: number): boolean {
    if (!this.#isOpen) {
      throw refusal("not-connected");
    }
    if (length > this.#longest) {
      throw refusal("too-long");
    }
    // A single message may exceed the limit.
    return this.#unacceptedBytes === 0 || this.#unacceptedBytes + length <= MAX_UNACCEPTED_BYTES;
  }

  /** Copies a message. All messages sent before the next microtask are posted to the worker together. */
  #queue(bytes: Uint8Array, { reliability, channel, priority }: SendOptions, receipt?: number): void {
    const options: SendOptions = {
      ...(reliability !== undefined && { reliability }),
      ...(channel !== undefined && { channel }),
      ...(priority !== undefined && { priority }),
    };
    this.#outgoing.push({ bytes: bytes.slice(), options, ...(receipt !== undefined && { receipt }) });
    this.#unacceptedBytes += bytes.length + OVERHEAD;
    if (this.#outgoing.length === 1) {
      queueMicrotask(() => this.#flush());
    }
  }

  #flush(): void {
    const messages = this.#outgoing;
    if (messages.length > 0) {
      this.#outgoing = [];
      this.#post({ type: "send", messages }, messages.map(({ bytes }) => bytes.buffer as ArrayBuffer));
    }
  }

  /** Handles an error of a message that only the worker could detect. */
  #refuse(receipt: number | undefined, error: RakwireError): void {
    const waiting = receipt === undefined ? undefined : this.#receipts.get(receipt);
    if (receipt !== undefined && waiting !== undefined) {
      this.#receipts.delete(receipt);
      waiting.reject(error);
    } else if (this.#isOpen || error.code !== "not-connected") {
      // Messages that could not be sent before the connection closed are not an error.
      report(error);
    }
  }
}

/**
 * Creates a separate worker for connections. If the content security policy of the page forbids workers from `blob:`,
 * pass a `start` that creates the worker from the file `rakwire/worker-script.js`.
 */
export function createWorker(start: () => Worker = startFromSource): PeerWorker {
  return new WorkerThread(start);
}

/** The shared worker of this page. The first connection that uses it starts it. */
export const worker: PeerWorker = /* @__PURE__ */ createWorker();

function startFromSource(): Worker {
  const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  const worker = new Worker(url);
  // Either event means that the script URL is no longer needed.
  ["message", "error"].forEach((type) => worker.addEventListener(type, () => URL.revokeObjectURL(url), { once: true }));
  return worker;
}
