/** Peers of both protocols, what only RakNet tells of a server, and clients that ask a server for its version first. */

import { readAddresses } from "./addresses.js";
import type { Rust } from "./instance.js";
import { readPong, writePing } from "./offline.js";
import type { Peer, PeerSettings } from "./peer.js";
import { RustPeerHandle } from "./peer.js";

/** A peer that is not connected. */
export function createPeer(rust: Rust, settings: PeerSettings): Peer {
  const { protocol, security, versionWaitMs = 0 } = settings;
  // A secure handshake proves the version from which it began, and a pong proves nothing.
  const asks = versionWaitMs > 0 && protocol === "raknet" && security === undefined;
  return asks ? new LearningPeerHandle(rust, settings, versionWaitMs) : new RakNetPeerHandle(rust, settings);
}

/** The time between two pings, either of which may be lost. */
const REPEAT_MS = 250;

export class RakNetPeerHandle extends RustPeerHandle {
  override internalAddresses(): string[] {
    const bytes = this.told("internalAddresses");
    return bytes ? readAddresses(bytes) : [];
  }

  override get serverGuid(): bigint | undefined {
    const bytes = this.told("serverGuid");
    return bytes && new DataView(bytes.buffer).getBigUint64(0, true);
  }

  override get securePeer(): Uint8Array | undefined {
    return this.told("securePeer");
  }
}

/** Sends pings before the first request, and names the version in it that a pong shows. */
class LearningPeerHandle extends RakNetPeerHandle {
  readonly #version: number;
  readonly #waitMs: number;
  /** When the next ping is due, and until when a pong is waited for; both infinity before and after that. */
  #pingAt = Infinity;
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
