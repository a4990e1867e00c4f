/** A peer with its transport and timers, from the opening of the WebSocket to the end of the connection. */

import type { PeerEvent } from "../pkg/rakwire.js";
import type { Delivery } from "./delivery.js";
import { readDelivery, reliabilityName, withReceipt } from "./delivery.js";
import type { ErrorCode } from "./errors.js";
import { fromRust, RakwireError } from "./errors.js";
import { Loop } from "./loop.js";
import type { RelayClose, TransportEvents } from "./transport/websocket.js";
import { describeClose, WebSocketTransport } from "./transport/websocket.js";
import type {
  CloseCode,
  ConnectionStats,
  Message,
  Outcome,
  Progress,
  Protocol,
  SendOptions,
  WebSocketConstructor,
} from "./types.js";
import type { Peer, PeerClasses } from "./wasm.js";

const ENTROPY_BYTES = 32;

/** How a session ended, before or after it was open. */
export interface SessionEnd {
  code: CloseCode | ErrorCode;
  reason: string;
  relayCode?: number;
}

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
  /** The resolvers of pending receipts, by receipt number. */
  readonly #receipts = new Map<number, (outcome: Outcome) => void>();
  #lastStats: ConnectionStats | undefined;

  constructor(classes: PeerClasses, settings: SessionSettings, owner: SessionOwner) {
    const entropy = crypto.getRandomValues(new Uint8Array(ENTROPY_BYTES));
    this.#owner = owner;
    this.#url = settings.url;
    this.#transport = new WebSocketTransport(settings.url, settings.webSocket, this);
    this.#protocol = settings.protocol;
    this.#peer =
      settings.protocol === "game"
        ? new classes.GameProtocolPeer(entropy)
        : new classes.RakNetPeer(entropy, settings.protocolVersion, settings.progressInterval);
    this.#loop = new Loop(
      this.#peer,
      this.#transport,
      () => this.#handleEvents(),
      (thrown) => this.#fail(thrown),
    );
  }

  send(bytes: Uint8Array, options: SendOptions): void {
    this.#send(bytes, readDelivery(options, this.#protocol));
  }

  /** Sends a message and resolves with its outcome. */
  sendWithReceipt(bytes: Uint8Array, options: SendOptions): Promise<Outcome> {
    const receipt = this.#send(bytes, withReceipt(readDelivery(options, this.#protocol), this.#protocol));
    return new Promise((resolve) => {
      if (receipt !== undefined) {
        this.#receipts.set(receipt, resolve);
      }
    });
  }

  /** Whether a receipt is pending. */
  get awaitsReceipt(): boolean {
    return this.#receipts.size > 0;
  }

  #send(bytes: Uint8Array, { reliability, channel, priority }: Delivery): number | undefined {
    if (!(bytes instanceof Uint8Array)) {
      throw new RakwireError("bad-option", "a message must be a Uint8Array");
    }
    if (this.#isOver) {
      throw new RakwireError("not-connected", "the connection has ended");
    }
    try {
      const receipt = this.#peer.send(bytes, reliability, channel, priority, performance.now());
      this.#loop.schedule();
      return receipt;
    } catch (thrown) {
      throw fromRust(thrown);
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

  stats(): ConnectionStats {
    return this.#lastStats ?? this.#peer.stats();
  }

  internalAddresses(): string[] {
    const peer = this.#peer;
    return this.#lastStats === undefined && "internalAddresses" in peer ? peer.internalAddresses() : [];
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
    const reason = wasOpen ? describeClose(close) : `the relay at ${this.#url.host} cannot be reached`;
    this.#end({ code: wasOpen ? "relay-closed" : "relay-unreachable", reason, relayCode: close.code });
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
    const { message, cause } = fromRust(thrown);
    console.error("rakwire:", cause ?? message);
    this.#end({ code: "internal", reason: message });
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
  }
}

const NO_STATS: ConnectionStats = {
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
