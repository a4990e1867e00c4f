/** A peer with its transport and timers, from opening the transport until the connection has closed. */

import type { ErrorCode } from "./errors.js";
import { fromThrown, notConnected } from "./errors.js";
import { Loop } from "./loop.js";
import type { SessionSettings } from "./options.js";
import { hasPage, onPageLeft, PAGE_LEFT } from "./page.js";
import type { Peer, PeerEvents } from "./peer.js";
import type { PeerStats } from "./rust.js";
import { describeStats } from "./rust.js";
import { checkBytes, readDelivery, WaitingSenders, withReceipt } from "./sending.js";
import { openTransport } from "./transport/relay.js";
import type { TransportEnd } from "./transport/carrier.js";
import type { RelayNotice } from "./transport/flow.js";
import type { Transport, TransportEvents } from "./transport/transport.js";
import type { CloseCode, Message, Outcome, PeerWorker, Progress, Protocol, ReadyOptions, SendOptions, TransportName } from "./types.js";
import type { WaitOptions } from "./waits.js";
import { beforeAbort, deferred } from "./waits.js";

/**
 * The time limit for closing a session in milliseconds. Rust gives up after 5 s and then sends a last datagram. If no
 * carrier is open by then, that datagram cannot be sent.
 */
const CLOSE_MS = 6_000;

/** Describes why a session ended, before or after it was open. */
export interface SessionEnd {
  code: CloseCode | ErrorCode;
  reason: string;
  relayCode?: number;
}

/** The callbacks of a session. */
export interface SessionOwner {
  /** True if the owner accepts another message. */
  readonly hasRoom: boolean;
  /**
   * `securePeer` is the public key of the server of a secure connection, and the hash of its next key if the server
   * announced one.
   */
  onConnected(securePeer: Uint8Array | undefined): void;
  onMessage(message: Message): void;
  onProgress(progress: Progress): void;
  onMtu(mtu: number): void;
  /** Called when the transport is lost. No datagrams are sent or received until {@link onResumed}. */
  onInterrupted(): void;
  onResumed(): void;
  onRelayNotice(notice: RelayNotice): void;
  onEnd(end: SessionEnd): void;
}

/** The part of a session that its connection uses. It may run in another thread. */
export interface SessionLike {
  readonly awaitsReceipt: boolean;
  readonly bufferedAmount: number;
  readonly serverGuid: bigint | undefined;
  readonly transport: TransportName | undefined;
  send(bytes: Uint8Array, options: SendOptions): void;
  sendWithReceipt(bytes: Uint8Array, options: SendOptions & WaitOptions): Promise<Outcome>;
  ready(options: ReadyOptions): Promise<void>;
  disconnect(): void;
  cancel(): void;
  /** Called when the owner accepts messages again. */
  onRoom(): void;
  stats(): PeerStats;
  internalAddresses(): string[];
}

/** A worker that runs sessions. */
export interface SessionWorker extends PeerWorker {
  open(module: WebAssembly.Module, settings: SessionSettings, owner: SessionOwner): SessionLike;
}

/** The callbacks of a loop: for events, after an exception, and at the end of each run. */
export type LoopCallbacks = [
  onEvents: () => void,
  onError: (thrown: unknown) => void,
  /** Returns true to be called again, because senders are waiting for capacity. */
  onRun: () => boolean,
];

/** The loop of a session. */
export type SessionLoop = Pick<Loop, "schedule" | "run" | "stop">;

/** One connection attempt, and the connection if the attempt succeeds. */
export class Session implements SessionLike, TransportEvents, PeerEvents {
  readonly #peer: Peer;
  readonly #protocol: Protocol;
  readonly #owner: SessionOwner;
  readonly #transport: Transport;
  readonly #loop: SessionLoop;
  readonly #senders: WaitingSenders;
  /** The resolvers of pending receipts, by receipt number. */
  readonly #receipts = new Map<number, (outcome: Outcome) => void>();
  #lastStats: PeerStats | undefined;
  #closeTimer: ReturnType<typeof setTimeout> | undefined;
  readonly #stay: () => void;
  /** True while the session closes because its page was left. */
  #isLeaving = false;

  /** On a server, all connections share one transport and one loop. */
  constructor(
    peer: Peer,
    { protocol, transport, endWithPage = false }: SessionSettings,
    owner: SessionOwner,
    open = openTransport,
    start = (...parts: [Peer, Transport, ...LoopCallbacks]): SessionLoop => new Loop(...parts),
  ) {
    this.#owner = owner;
    this.#protocol = protocol;
    this.#peer = peer;
    this.#senders = new WaitingSenders(peer);
    this.#transport = open(transport, this);
    this.#loop = start(
      peer,
      this.#transport,
      () => this.#handleEvents(),
      (thrown) => this.#fail(thrown),
      () => this.#senders.update(),
    );
    const isFragile = (): boolean => this.transport === "webtransport";
    this.#stay = endWithPage ? onPageLeft(() => this.leave(), isFragile) : () => undefined;
  }

  send(bytes: Uint8Array, options: SendOptions): void {
    this.#send(bytes, readDelivery(options, this.#protocol));
  }

  /** Sends a message and resolves with its outcome. */
  async sendWithReceipt(bytes: Uint8Array, options: SendOptions & WaitOptions): Promise<Outcome> {
    options.signal?.throwIfAborted();
    return beforeAbort(options.signal, this.sendForReceipt(bytes, options));
  }

  /** Sends a message immediately, or throws. The promise resolves with the outcome. */
  sendForReceipt(bytes: Uint8Array, options: SendOptions): Promise<Outcome> {
    const delivery = withReceipt(readDelivery(options, this.#protocol), this.#protocol);
    const receipt = this.#send(bytes, delivery) as number;
    const { promise, resolve } = deferred<Outcome>();
    this.#receipts.set(receipt, resolve);
    return promise;
  }

  /** Throws if a message of this length could never be accepted. */
  checkLength(length: number): void {
    this.#peer.canSend(length, readDelivery({}, this.#protocol));
  }

  /** Resolves when a message would be accepted. */
  ready(options: ReadyOptions): Promise<void> {
    const ready = this.#senders.ready(options, this.#protocol);
    if (this.#senders.areWaiting) {
      this.#loop.schedule();
    }
    return ready;
  }

  /** True if a receipt is pending. */
  get awaitsReceipt(): boolean {
    return this.#receipts.size > 0;
  }

  #send(bytes: Uint8Array, delivery: number): number | undefined {
    checkBytes(bytes);
    if (this.#isOver) {
      throw notConnected();
    }
    try {
      return this.#peer.send(bytes, delivery, this.#loop.schedule());
    } catch (thrown) {
      const error = fromThrown(thrown);
      if (error.code === "queue-full") {
        this.#senders.refused = { length: bytes.length, delivery };
      }
      throw error;
    }
  }

  /** Disconnects gracefully; `onEnd` follows. */
  disconnect(): void {
    this.#change((now) => this.#peer.disconnect(now));
    if (!this.#isOver) {
      const reason = "it was closed while it had no transport to the server";
      this.#closeTimer ??= setTimeout(() => this.#end({ code: "local", reason }), CLOSE_MS);
    }
  }

  /** Disconnects immediately, without waiting for acknowledgements, because the page is being left. */
  leave(): void {
    if (this.#isOver) {
      return;
    }
    this.#isLeaving = true;
    this.disconnect();
    // The peer has closed already if nothing was in transit.
    if (!this.#isOver) {
      // Skips the wait for acknowledgements.
      this.#guard(() => this.#peer.handleTimeout(performance.now() + CLOSE_MS));
      this.#end(PAGE_LEFT);
    }
  }

  /** Disconnects immediately, without calling `onEnd`. */
  cancel(): void {
    if (!this.#isOver) {
      this.#peer.disconnect(performance.now());
      this.#release();
    }
  }

  onRoom(): void {
    this.#loop.schedule();
  }

  stats(): PeerStats {
    return this.#lastStats ?? this.#currentStats();
  }

  #currentStats(): PeerStats {
    const stats = this.#peer.stats();
    if (this.#transport.dropped > 0) {
      stats.drops["tooLongForTransport"] = this.#transport.dropped;
    }
    return stats;
  }

  get transport(): TransportName | undefined {
    return this.#isOver ? undefined : this.#transport.name;
  }

  get bufferedAmount(): number {
    return this.#isOver ? 0 : this.#peer.stats().bytesWaiting + this.#transport.bufferedAmount;
  }

  internalAddresses(): string[] {
    return this.#isOver ? [] : this.#peer.internalAddresses();
  }

  get serverGuid(): bigint | undefined {
    return this.#isOver ? undefined : this.#peer.serverGuid;
  }

  onTransportOpen(): void {
    this.#change((now) => this.#peer.connect(now));
  }

  onCarrier(isStream: boolean): void {
    if (!this.#isOver) {
      this.#peer.setCarrier(isStream);
      this.#loop.schedule();
    }
  }

  onDatagram(datagram: Uint8Array): void {
    if (this.#isOver) {
      return;
    }
    const now = performance.now();
    try {
      this.#peer.handle(datagram, now);
    } catch (thrown) {
      this.#fail(thrown);
    }
    this.#loop.run(now);
  }

  onInterrupted(): void {
    this.#owner.onInterrupted();
  }

  onResumed(): void {
    this.#owner.onResumed();
    this.#change(() => undefined);
  }

  onRelayNotice(notice: RelayNotice): void {
    this.#owner.onRelayNotice(notice);
  }

  onClose(end: TransportEnd): void {
    if (!this.#isOver) {
      this.#guard(() => this.#handleEvents(true));
      this.#end(end);
    }
  }

  onConnected(): void {
    this.#owner.onConnected(this.#peer.securePeer);
  }

  onMessage(message: Message): void {
    this.#owner.onMessage(message);
  }

  onReceipt(receipt: number, outcome: Outcome): void {
    this.#receipts.get(receipt)?.(outcome);
    this.#receipts.delete(receipt);
  }

  onProgress(progress: Progress): void {
    this.#owner.onProgress(progress);
  }

  onMtu(mtu: number): void {
    this.#owner.onMtu(mtu);
  }

  onFailed(code: ErrorCode, reason: string): void {
    this.#end({ code, reason });
  }

  onEnded(code: CloseCode, reason: string): void {
    this.#end({ code, reason });
  }

  get #isOver(): boolean {
    return this.#lastStats !== undefined;
  }

  #change(work: (now: number) => void): void {
    if (!this.#isOver) {
      const now = performance.now();
      this.#guard(() => work(now));
      this.#loop.run(now);
    }
  }

  #guard(work: () => void): void {
    try {
      work();
    } catch (thrown) {
      this.#fail(thrown);
    }
  }

  /** Handles events while the owner accepts them, or all of them once the peer has closed. */
  #handleEvents(all = this.#peer.isOver): void {
    while (!this.#isOver && (all || this.#owner.hasRoom) && this.#peer.pollEvent(this));
  }

  #fail(thrown: unknown): void {
    const { code, message, cause } = fromThrown(thrown);
    if (code === "internal") {
      console.error("rakwire:", cause ?? message);
    } else {
      this.#disconnectAtOnce();
    }
    this.#end({ code, reason: message });
  }

  /** Notifies the server immediately, so that it need not wait for its timeout. */
  #disconnectAtOnce(): void {
    try {
      this.#peer.disconnect(performance.now());
    } catch {
      // The server detects the loss by its timeout instead.
    }
  }

  #end(end: SessionEnd): void {
    if (!this.#isOver) {
      this.#release();
      this.#owner.onEnd(this.#isLeaving ? PAGE_LEFT : end);
    }
  }

  #release(): void {
    clearTimeout(this.#closeTimer);
    this.#stay();
    this.#loop.stop();
    // The peer may be unusable after a failure.
    try {
      this.#lastStats = this.#currentStats();
      this.#peer.free();
    } catch {
      this.#lastStats ??= describeStats([], []);
    }
    this.#transport.close(this.#isLeaving && hasPage());
    for (const resolve of this.#receipts.values()) {
      resolve("unknown");
    }
    this.#receipts.clear();
    this.#senders.end();
  }
}
