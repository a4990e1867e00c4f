/** A peer with its transport and timers, from the opening of the WebSocket to the end of the connection. */

import type { PeerEvent } from "../pkg/rakwire.js";
import { readAddresses } from "./addresses.js";
import type { Delivery } from "./delivery.js";
import { readDelivery, reliabilityName, withReceipt } from "./delivery.js";
import type { ErrorCode } from "./errors.js";
import { fromRust, RakwireError } from "./errors.js";
import { Loop } from "./loop.js";
import { readInteger } from "./options.js";
import type { RelayClose, TransportEvents } from "./transport/websocket.js";
import { describeClose, WebSocketTransport } from "./transport/websocket.js";
import type {
  CloseCode,
  ConnectionStats,
  MemoryOptions,
  Message,
  Outcome,
  Progress,
  Protocol,
  ReadyOptions,
  SendOptions,
  WebSocketConstructor,
} from "./types.js";
import { WaitingSenders } from "./waiting-senders.js";
import type { WaitOptions } from "./waits.js";
import { beforeAbort, deferred } from "./waits.js";
import type { Peer, PeerClasses } from "./wasm.js";

const ENTROPY_BYTES = 32;
const ENDED = "the connection has ended";
/** More bytes than any message can have. */
const MAX_LENGTH = 0xffff_ffff;

/** How a session ended, before or after it was open. */
export interface SessionEnd {
  code: CloseCode | ErrorCode;
  reason: string;
  relayCode?: number;
}

/** The counters of a session, without those of the queue that its messages go into. */
export type SessionStats = Omit<ConnectionStats, "messagesQueued" | "messagesDiscarded">;

/** The callbacks of a session. */
export interface SessionOwner {
  /** Whether there is room for another message. */
  readonly hasRoom: boolean;
  onOpen(): void;
  onMessage(message: Message): void;
  onProgress(progress: Progress): void;
  onEnd(end: SessionEnd): void;
}

export interface SessionSettings {
  url: URL;
  protocol: Protocol;
  protocolVersion: number;
  progressInterval: number;
  password: Uint8Array;
  memory: MemoryOptions;
  webSocket: WebSocketConstructor;
}

/** One attempt to connect, and the connection if it succeeds. */
export class Session implements TransportEvents {
  readonly #peer: Peer;
  readonly #protocol: Protocol;
  readonly #owner: SessionOwner;
  readonly #url: URL;
  readonly #transport: WebSocketTransport;
  readonly #loop: Loop;
  readonly #senders: WaitingSenders;
  /** The resolvers of pending receipts, by receipt number. */
  readonly #receipts = new Map<number, (outcome: Outcome) => void>();
  #lastStats: SessionStats | undefined;

  constructor(classes: PeerClasses, settings: SessionSettings, owner: SessionOwner) {
    this.#owner = owner;
    this.#url = settings.url;
    this.#protocol = settings.protocol;
    this.#peer = createPeer(classes, settings);
    this.#senders = new WaitingSenders(this.#peer);
    this.#transport = new WebSocketTransport(settings.url, settings.webSocket, this);
    this.#loop = new Loop(
      this.#peer,
      this.#transport,
      () => this.#handleEvents(),
      (thrown) => this.#fail(thrown),
      () => this.#senders.update(),
    );
  }

  send(bytes: Uint8Array, options: SendOptions): void {
    this.#send(bytes, readDelivery(options, this.#protocol));
  }

  /** Sends a message and resolves with its outcome. */
  async sendWithReceipt(bytes: Uint8Array, options: SendOptions & WaitOptions): Promise<Outcome> {
    const delivery = withReceipt(readDelivery(options, this.#protocol), this.#protocol);
    options.signal?.throwIfAborted();
    const receipt = this.#send(bytes, delivery) as number;
    const { promise, resolve } = deferred<Outcome>();
    this.#receipts.set(receipt, resolve);
    try {
      return await beforeAbort(options.signal, promise);
    } finally {
      this.#receipts.delete(receipt);
    }
  }

  /** Resolves when a message would be accepted. */
  async ready(options: ReadyOptions): Promise<void> {
    const { length, signal } = options;
    const delivery = readDelivery(options, this.#protocol);
    if (length !== undefined) {
      readInteger("length", length, 1, MAX_LENGTH);
    }
    if (this.#isOver) {
      throw new RakwireError("not-connected", ENDED);
    }
    const refused = length === undefined ? this.#senders.refused : undefined;
    return this.#senders.wait(refused ?? { length: length ?? 1, delivery }, signal);
  }

  /** Whether a receipt is pending. */
  get awaitsReceipt(): boolean {
    return this.#receipts.size > 0;
  }

  #send(bytes: Uint8Array, delivery: Delivery): number | undefined {
    const { reliability, channel, priority } = delivery;
    if (!(bytes instanceof Uint8Array)) {
      throw new RakwireError("bad-option", "a message must be a Uint8Array");
    }
    if (this.#isOver) {
      throw new RakwireError("not-connected", ENDED);
    }
    try {
      const receipt = this.#peer.send(bytes, reliability, channel, priority, performance.now());
      this.#loop.schedule();
      return receipt;
    } catch (thrown) {
      const error = fromRust(thrown);
      if (error.code === "queue-full") {
        this.#senders.refused = { length: bytes.length, delivery };
      }
      throw error;
    }
  }

  /** Disconnects; `onEnd` follows. */
  disconnect(): void {
    this.#change(() => this.#peer.disconnect(performance.now()));
  }

  /** Disconnects at once and without `onEnd`. */
  cancel(): void {
    if (!this.#isOver) {
      this.#peer.disconnect(performance.now());
      this.#release();
    }
  }

  /** Resumes handling events after there is room again. */
  resume(): void {
    this.#loop.schedule();
  }

  stats(): SessionStats {
    return this.#lastStats ?? this.#peer.stats();
  }

  internalAddresses(): string[] {
    const peer = this.#peer;
    const isOpen = this.#lastStats === undefined && "internalAddresses" in peer;
    return isOpen ? readAddresses(peer.internalAddresses()) : [];
  }

  get serverGuid(): bigint | undefined {
    const peer = this.#peer;
    return this.#lastStats === undefined && "serverGuid" in peer ? peer.serverGuid : undefined;
  }

  onOpen(): void {
    this.#change(() => this.#peer.connect(performance.now()));
  }

  onDatagram(datagram: Uint8Array): void {
    this.#change(() => this.#peer.handle(datagram, performance.now()));
  }

  onClose(close: RelayClose, wasOpen: boolean): void {
    if (this.#isOver) {
      return;
    }
    this.#guard(() => this.#handleEvents(true));
    const [code, reason] = describeClose(this.#url, close, wasOpen);
    this.#end({ code, reason, relayCode: close.code });
  }

  get #isOver(): boolean {
    return this.#lastStats !== undefined;
  }

  #change(work: () => void): void {
    if (!this.#isOver) {
      this.#guard(work);
      this.#loop.run();
    }
  }

  #guard(work: () => void): void {
    try {
      work();
    } catch (thrown) {
      this.#fail(thrown);
    }
  }

  /** Handles events while there is room for them, or all of them once the peer has ended. */
  #handleEvents(all = this.#peer.isOver): void {
    while (!this.#isOver && (all || this.#owner.hasRoom)) {
      const event = this.#peer.pollEvent();
      if (event === undefined) {
        return;
      }
      this.#onEvent(event);
    }
  }

  #onEvent(event: PeerEvent): void {
    switch (event.kind) {
      case "connected":
        this.#owner.onOpen();
        break;
      case "message":
        this.#owner.onMessage({
          bytes: event.bytes,
          reliability: reliabilityName(event.reliability),
          channel: event.channel,
        });
        break;
      case "receipt":
        this.#receipts.get(event.receipt)?.(event.outcome);
        this.#receipts.delete(event.receipt);
        break;
      case "progress": {
        const { direction, message, done, parts } = event;
        this.#owner.onProgress({ direction, message, done, parts });
        break;
      }
      case "failed":
      case "ended":
        this.#end({ code: event.code as SessionEnd["code"], reason: event.words });
        break;
    }
  }

  #fail(thrown: unknown): void {
    const { code, message, cause } = fromRust(thrown);
    if (code === "internal") {
      console.error("rakwire:", cause ?? message);
    }
    this.#end({ code, reason: message });
  }

  #end(end: SessionEnd): void {
    if (!this.#isOver) {
      this.#release();
      this.#owner.onEnd(end);
    }
  }

  #release(): void {
    // After a failure the peer may be unusable.
    try {
      this.#lastStats = this.#peer.stats();
      this.#loop.stop();
      this.#peer.free();
    } catch {
      this.#lastStats ??= NO_STATS;
    }
    this.#transport.close();
    for (const resolve of this.#receipts.values()) {
      resolve("unknown");
    }
    this.#receipts.clear();
    this.#senders.refuse(new RakwireError("not-connected", ENDED));
  }
}

/** A peer that is not connected. */
function createPeer(classes: PeerClasses, settings: SessionSettings): Peer {
  const entropy = crypto.getRandomValues(new Uint8Array(ENTROPY_BYTES));
  const { protocol, protocolVersion, progressInterval, password } = settings;
  const { blocks, blockSize } = settings.memory;
  try {
    return protocol === "game"
      ? new classes.GameProtocolPeer(entropy, blocks, blockSize)
      : new classes.RakNetPeer(entropy, protocolVersion, progressInterval, password, blocks, blockSize);
  } catch (thrown) {
    throw fromRust(thrown);
  }
}

const NO_STATS: SessionStats = {
  roundTripMs: 0,
  pingMs: 0,
  lowestPingMs: 0,
  congestionWindow: 0,
  inFlight: 0,
  mtu: 0,
  messagesSent: 0,
  messagesReceived: 0,
  datagramsSent: 0,
  datagramsReceived: 0,
  datagramsLost: 0,
  datagramsAcknowledged: 0,
  bytesSent: 0,
  bytesReceived: 0,
  drops: {},
};
