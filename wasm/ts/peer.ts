/**
 * A protocol peer in Rust. Passes numbers and bytes to the WebAssembly and converts its output. There is a class for
 * each protocol, and one for RakNet clients that first ping the server for its version.
 */

import type { ErrorCode } from "./errors.js";
import { RakwireError } from "./errors.js";
import type { PeerSettings } from "./options.js";
import { readAddresses, readPong, writePing } from "./raknet-wire.js";
import type { PeerStats, Rust, RustPeer, Texts } from "./rust.js";
import {
  CONNECTED,
  describeStats,
  dropNames,
  ENDED,
  ENDS,
  ERRORS,
  EVENT_WITHOUT_MEMORY,
  FAILED,
  FAILURES,
  HEADER,
  MAX_DATAGRAM,
  MESSAGE,
  MTU,
  readTexts,
  RECEIPT,
  RECEIVING,
  SENDING,
} from "./rust.js";
import { reliabilityName } from "./sending.js";
import type { CloseCode, Message, Outcome, Progress } from "./types.js";

/** The callbacks of a peer. */
export interface PeerEvents {
  onConnected(): void;
  onFailed(code: ErrorCode, reason: string): void;
  onEnded(code: CloseCode, reason: string): void;
  onMessage(message: Message): void;
  onReceipt(receipt: number, outcome: Outcome): void;
  onProgress(progress: Progress): void;
  onMtu(mtu: number): void;
}

/** A connection to one server, without socket and timers. */
export type Peer = Pick<RustPeerHandle, keyof RustPeerHandle>;

const NO_MEMORY = "there is not enough memory; give the connection fewer or smaller blocks";

/** Creates an unconnected peer of the Game Protocol. */
export function createGamePeer(rust: Rust, settings: PeerSettings): Peer {
  return new RustPeerHandle(rust, settings);
}

export class RustPeerHandle {
  readonly #rust: RustPeer;
  #peer = 0;
  readonly #memory: WebAssembly.Memory;
  readonly #settings: PeerSettings;
  #bytes = new Uint8Array(0);
  #view = new DataView(this.#bytes.buffer);
  #readTexts: Texts = [];

  constructor({ memory, ...classes }: Rust, settings: PeerSettings) {
    const rust = classes[settings.protocol];
    if (rust === undefined) {
      throw new RakwireError("bad-option", `this WebAssembly has no protocol ${settings.protocol}; use rakwire/rakwire.wasm`);
    }
    this.#rust = rust;
    this.#memory = memory;
    this.#settings = settings;
    this.create(settings.protocolVersion);
  }

  /** Creates the peer in Rust, replacing an existing one. */
  protected create(protocolVersion: number): void {
    const [a, b, c, d] = crypto.getRandomValues(new BigUint64Array(4)) as unknown as [bigint, bigint, bigint, bigint];
    const { memory, silenceTimeoutMs, progressInterval, outgoingLimit } = this.#settings;
    const { blocks = 0, blockSize = 0 } = memory;
    if (this.#peer !== 0) {
      this.free();
    }
    this.#peer = this.#rust.create(a, b, c, d, blocks, blockSize, silenceTimeoutMs, protocolVersion, progressInterval, outgoingLimit);
    if (this.#peer === 0) {
      throw new RakwireError("no-memory", NO_MEMORY);
    }
  }

  connect(now: number): void {
    const { password } = this.#settings;
    this.#write(password);
    const error = this.#rust.connect(this.#peer, password.length, now);
    if (error > 0) {
      throw this.#failure(error - 1);
    }
  }

  handle(datagram: Uint8Array, now: number): void {
    if (datagram.length < MAX_DATAGRAM) {
      this.#write(datagram);
      this.#rust.handle(this.#peer, datagram.length, now);
    }
  }

  handleTimeout(now: number): void {
    this.#rust.handleTimeout(this.#peer, now);
  }

  /** Reports whether the transport is a reliable stream, which needs no loss recovery. */
  setCarrier(isStream: boolean): void {
    this.#rust.setCarrier(this.#peer, isStream ? 1 : 0);
  }

  disconnect(now: number): void {
    this.#rust.disconnect(this.#peer, now);
  }

  /** Returns the next datagram to send, if any: a view of WebAssembly memory that is valid until the next call. */
  pollTransmit(now: number): Uint8Array<ArrayBuffer> | undefined {
    const at = this.#rust.pollTransmit(this.#peer, now);
    if (at === 0) {
      return undefined;
    }
    const length = this.#number(at, 3);
    return this.#bytes.subarray(at + HEADER, at + HEADER + length);
  }

  /** Reports the next event. Returns false if there is none. */
  pollEvent(events: PeerEvents): boolean {
    const at = this.#rust.pollEvent(this.#peer);
    if (at === 0) {
      return false;
    }
    if (at === EVENT_WITHOUT_MEMORY) {
      throw new RakwireError("no-memory", "there is no memory for a received message");
    }
    const a = this.#number(at, 1);
    const b = this.#number(at, 2);
    switch (this.#number(at, 0)) {
      case CONNECTED:
        events.onConnected();
        break;
      case FAILED: {
        const [code, text] = this.#text(FAILURES, a);
        events.onFailed(code as ErrorCode, text.replace("{}", String(b)));
        break;
      }
      case ENDED: {
        const [code, text] = this.#text(ENDS, a);
        events.onEnded(code as CloseCode, text);
        break;
      }
      case MESSAGE:
        events.onMessage({ bytes: this.#read(at), reliability: reliabilityName(a), channel: b });
        break;
      case RECEIPT:
        events.onReceipt(a, b === 1 ? "acknowledged" : "lost");
        break;
      case SENDING:
        events.onProgress({ direction: "sending", message: a, done: b, parts: this.#number(at, 4) });
        break;
      case RECEIVING:
        events.onProgress({ direction: "receiving", message: a, done: b, parts: this.#number(at, 4) });
        break;
      case MTU:
        events.onMtu(a);
        break;
    }
    return true;
  }

  /** Returns the time of the next timeout in milliseconds; infinity if none is pending. */
  pollTimeout(): number {
    return this.#rust.pollTimeout(this.#peer);
  }

  get isOver(): boolean {
    return this.#rust.isOver(this.#peer) !== 0;
  }

  /** Queues a message. Returns its receipt number if the delivery has a receipt. */
  send(bytes: Uint8Array, delivery: number, now: number): number | undefined {
    this.#write(bytes);
    const sent = this.#rust.send(this.#peer, bytes.length, delivery, now);
    if (sent < 0) {
      throw this.#failure(-1 - sent);
    }
    return sent > 0 ? sent - 1 : undefined;
  }

  /** Returns true if a message of this length would be accepted now. Throws if it would never be accepted. */
  canSend(length: number, delivery: number): boolean {
    const answer = this.#rust.canSend(this.#peer, length, delivery);
    if (answer < 0) {
      throw this.#failure(-1 - answer);
    }
    return answer === 1;
  }

  stats(): PeerStats {
    const bytes = this.#read(this.#rust.stats(this.#peer));
    return describeStats(new Float64Array(bytes.buffer), dropNames(this.#texts));
  }

  internalAddresses(): string[] {
    return [];
  }

  get serverGuid(): bigint | undefined {
    return undefined;
  }

  /** The public key of the server of a secure connection, and the hash of its next key if the server announces one. */
  get securePeer(): Uint8Array | undefined {
    return undefined;
  }

  free(): void {
    this.#rust.free(this.#peer, 0);
  }

  /** Copies bytes to WebAssembly memory. */
  #write(bytes: Uint8Array): void {
    const at = this.#rust.reserve(this.#peer, bytes.length);
    if (at === 0) {
      throw new RakwireError("no-memory", NO_MEMORY);
    }
    this.#refresh();
    this.#bytes.set(bytes, at + HEADER);
  }

  /** Reads an optional value from Rust. */
  protected read(what: "internalAddresses" | "serverGuid" | "securePeer" | "texts"): Uint8Array<ArrayBuffer> | undefined {
    const at = this.#rust[what]?.(this.#peer);
    return at ? this.#read(at) : undefined;
  }

  get #texts(): Texts {
    return this.#readTexts[0] ? this.#readTexts : (this.#readTexts = readTexts(this.read("texts")));
  }

  /**
   * Returns the code and the text of a number. Rust has a text for each of its numbers, so a missing text means that
   * memory ran out.
   */
  #text(paragraph: number, number: number): readonly [code: string, text: string] {
    return this.#texts[paragraph]?.[number] ?? ["no-memory", NO_MEMORY];
  }

  /** Returns the error that has this number in Rust. */
  #failure(number: number): RakwireError {
    const [code, text] = this.#text(ERRORS, number);
    return new RakwireError(code as ErrorCode, text);
  }

  /** Copies the bytes of a record and frees it. Address 0 means that memory ran out; the result is then empty. */
  #read(at: number): Uint8Array<ArrayBuffer> {
    const length = at && this.#number(at, 3);
    return this.#bytes.slice(at + HEADER, at + HEADER + length);
  }

  #number(at: number, index: number): number {
    this.#refresh();
    return this.#view.getUint32(at + 4 * index, true);
  }

  /** Renews the views of WebAssembly memory, which become detached when it grows. */
  #refresh(): void {
    if (this.#bytes.length === 0) {
      this.#bytes = new Uint8Array(this.#memory.buffer as ArrayBuffer);
      this.#view = new DataView(this.#memory.buffer);
    }
  }
}

/** Creates an unconnected peer. */
export function createPeer(rust: Rust, settings: PeerSettings): Peer {
  const { protocol, security, versionWaitMs = 0 } = settings;
  // A secure handshake authenticates the initial version. A pong is not authenticated.
  const probesVersion = versionWaitMs > 0 && protocol === "raknet" && security === undefined;
  return probesVersion ? new VersionProbingPeerHandle(rust, settings, versionWaitMs) : new RakNetPeerHandle(rust, settings);
}

/** The interval between pings in milliseconds. Pings are repeated because each ping or pong may be lost. */
const REPEAT_MS = 250;

export class RakNetPeerHandle extends RustPeerHandle {
  override internalAddresses(): string[] {
    const bytes = this.read("internalAddresses");
    return bytes ? readAddresses(bytes) : [];
  }

  override get serverGuid(): bigint | undefined {
    const bytes = this.read("serverGuid");
    return bytes && new DataView(bytes.buffer).getBigUint64(0, true);
  }

  override get securePeer(): Uint8Array | undefined {
    return this.read("securePeer");
  }
}

/** Sends pings before the first request, and requests the version in the pong. */
class VersionProbingPeerHandle extends RakNetPeerHandle {
  readonly #version: number;
  readonly #waitMs: number;
  /** The time of the next ping; infinity while no ping is pending. */
  #pingAt = Infinity;
  /** The deadline for a pong; infinity while not probing. */
  #until = Infinity;
  #isOverStream = false;

  constructor(rust: Rust, settings: PeerSettings, waitMs: number) {
    super(rust, settings);
    this.#version = settings.protocolVersion;
    this.#waitMs = waitMs;
  }

  get #awaitsPong(): boolean {
    return this.#until !== Infinity;
  }

  override connect(now: number): void {
    this.#pingAt = now;
    this.#until = now + this.#waitMs;
  }

  override setCarrier(isStream: boolean): void {
    this.#isOverStream = isStream;
    super.setCarrier(isStream);
  }

  override handle(datagram: Uint8Array, now: number): void {
    if (!this.#awaitsPong) {
      super.handle(datagram, now);
      return;
    }
    const pong = readPong(datagram);
    if (pong !== undefined) {
      this.#begin(pong.protocolVersion ?? this.#version, now);
    }
  }

  override handleTimeout(now: number): void {
    if (now >= this.#until) {
      this.#begin(this.#version, now);
    }
    super.handleTimeout(now);
  }

  override disconnect(now: number): void {
    this.#stopWaiting();
    super.disconnect(now);
  }

  override pollTransmit(now: number): Uint8Array<ArrayBuffer> | undefined {
    if (!this.#awaitsPong) {
      return super.pollTransmit(now);
    }
    if (now < this.#pingAt) {
      return undefined;
    }
    this.#pingAt = now + REPEAT_MS;
    const [guid] = crypto.getRandomValues(new BigUint64Array(1)) as unknown as [bigint];
    return writePing("any", BigInt(Math.round(now)), guid);
  }

  override pollTimeout(): number {
    return this.#awaitsPong ? Math.min(this.#pingAt, this.#until) : super.pollTimeout();
  }

  #stopWaiting(): void {
    this.#pingAt = this.#until = Infinity;
  }

  #begin(version: number, now: number): void {
    this.#stopWaiting();
    if (version !== this.#version) {
      this.create(version);
      super.setCarrier(this.#isOverStream);
    }
    super.connect(now);
  }
}
