/** Speakers and listeners of voice chat, and their messages (docs/plugins/voice.md). */

import { RakwireError } from "../errors.js";
import { checkNames, readInteger } from "../options.js";
import { attachUntilEnd } from "../plugin/connection.js";
import { FIRST_FREE_ID } from "../sending.js";
import type { Connection, Message, SendOptions } from "../types.js";
import type { Playback, SpeakerStats, VoiceFrame } from "./jitter-buffer.js";
import { JitterBuffer, plus } from "./jitter-buffer.js";
import { FRAME_MICROS } from "./sound.js";

/** Bytes before a frame: the id, the flags and the number. */
const HEADER_LENGTH = 4;
/** The longest frame: the smallest MTU carries it in one datagram, or in two if the connection is secure. */
const MAX_FRAME = 508;
/** The flags: the frame begins what a speaker says, or ends it. */
const FIRST = 1;
const LAST = 2;

/** More than the longest delay needs. */
const BUFFER_FRAMES = 16;
const MAX_DELAY_MS = ((BUFFER_FRAMES - 1) * FRAME_MICROS) / 1_000;
/** What a connection says of a frame that it cannot send now, or no more. */
const LEFT_OUT: readonly string[] = ["queue-full", "not-connected", "not-sent"];

/** The settings of a {@link Voice}. All peers have the same id. */
export interface VoiceOptions {
  /** The message id, one of the application's: 134 or above. */
  id: number;
  /** The ordering channel, on which nothing else should be sequenced. 31 by default. */
  channel?: number;
  /** The longest time that a buffer keeps frames back. 200 ms by default: with more, people talk over each other. */
  maxDelayMs?: number;
}

/** Counters. */
export interface VoiceStats {
  /** Frames that were sent, to each who hears this peer. */
  readonly sent: number;
  /** Frames that found no room in a connection, and were left out. */
  readonly dropped: number;
  /** Messages that were none. */
  readonly malformed: number;
}

interface Other {
  buffer: JitterBuffer;
  /** It is sent what this peer says. */
  hears: boolean;
  /** What it says is thrown away. */
  isMuted: boolean;
  readonly detach: () => void;
}

/**
 * Encoded frames of 20 ms, from this peer to those of its connections and back. It knows no codec and no sound:
 * {@link openMicrophone} and {@link openLoudspeaker} do, in pages.
 *
 * ```ts
 * const voice = new Voice({ id: 0x90 });
 * voice.join(connection);
 * await openLoudspeaker(voice);
 * const microphone = await openMicrophone(voice, { isPushToTalk: true });
 * button.onpointerdown = () => microphone.startTalking();
 * button.onpointerup = () => microphone.stopTalking();
 * ```
 */
export class Voice {
  readonly #id: number;
  readonly #delivery: SendOptions;
  readonly #maxDelay: number;
  readonly #clock: () => number;
  readonly #others = new Map<Connection, Other>();
  readonly #stats = { sent: 0, dropped: 0, malformed: 0 };
  #number = 0;
  #isTalking = false;
  #isMuted = false;

  /**
   * It hears all who join, and is heard by all.
   *
   * @throws RakwireError with the code `bad-option`.
   */
  constructor(options: VoiceOptions, clock: () => number = () => performance.now()) {
    const { id, channel = 31, maxDelayMs = 200 } = options;
    checkNames(options, ["id", "channel", "maxDelayMs"]);
    this.#id = readInteger("id", id, FIRST_FREE_ID, 255);
    this.#delivery = { reliability: "unreliable-sequenced", channel: readInteger("channel", channel, 0, 31) };
    this.#maxDelay = readInteger("maxDelayMs", maxDelayMs, 0, MAX_DELAY_MS) * 1_000;
    this.#clock = clock;
  }

  /**
   * Speaks with the peer of a connection of RakNet, until that has ended or {@link leave} is called.
   *
   * @throws RakwireError with the code `bad-option` if another plugin of the connection has the id.
   */
  join(connection: Connection): void {
    if (this.#others.has(connection)) {
      return;
    }
    const plugin = { ids: [this.#id], onMessage: ({ bytes }: Message) => this.#onMessage(connection, bytes) };
    const detach = attachUntilEnd(connection, plugin, () => this.leave(connection));
    this.#others.set(connection, { buffer: this.#newBuffer(), hears: true, isMuted: false, detach });
  }

  /** Speaks with the peer of a connection no longer. */
  leave(connection: Connection): void {
    this.#others.get(connection)?.detach();
    this.#others.delete(connection);
  }

  /** Whether a connection has joined. */
  has(connection: Connection): boolean {
    return this.#others.has(connection);
  }

  /**
   * Sends a frame of 1 to 508 bytes; call it every 20 ms while somebody speaks. While this peer is muted, it does nothing.
   *
   * @throws RakwireError with the code `empty-message` or `too-long`, or that of a connection whose protocol has no sequences.
   */
  talk(frame: Uint8Array): void {
    this.#send(frame, false);
  }

  /**
   * Sends the last frame of what somebody says. Others then play it to its end and wait for nothing; without it they notice
   * after five frames.
   *
   * @throws RakwireError as {@link talk}.
   */
  talkLast(frame: Uint8Array): void {
    this.#send(frame, true);
  }

  /** Whether nothing of this peer is sent. */
  get isMuted(): boolean {
    return this.#isMuted;
  }

  set isMuted(isMuted: boolean) {
    this.#isMuted = isMuted;
    this.#isTalking &&= !isMuted;
  }

  /** Whether what another peer says is thrown away; false if its connection has not joined. */
  mute(connection: Connection, isMuted: boolean): boolean {
    const other = this.#others.get(connection);
    if (other !== undefined) {
      [other.isMuted, other.buffer] = [isMuted, this.#newBuffer()];
    }
    return other !== undefined;
  }

  /** Whether another peer is sent what this one says: for teams, or for who is near. False if its connection has not joined. */
  setHeardBy(connection: Connection, hears: boolean): boolean {
    const other = this.#others.get(connection);
    if (other !== undefined) {
      other.hears = hears;
    }
    return other !== undefined;
  }

  /** Those of whom there is something to play, or was a moment ago. */
  speakers(): Connection[] {
    return [...this.#others].filter(([, { buffer }]) => !buffer.isSilent).map(([connection]) => connection);
  }

  /** What to play of a speaker; a loudspeaker calls it every 20 ms. */
  play(connection: Connection): Playback {
    return this.#others.get(connection)?.buffer.play(this.#now()) ?? { kind: "silence" };
  }

  /** How long the frames of a speaker are kept back now. */
  delayMs(connection: Connection): number | undefined {
    const delay = this.#others.get(connection)?.buffer.delay;
    return delay === undefined ? undefined : delay / 1_000;
  }

  /** What has become of the frames of a speaker. */
  speakerStats(connection: Connection): SpeakerStats | undefined {
    return this.#others.get(connection)?.buffer.stats();
  }

  stats(): VoiceStats {
    return { ...this.#stats };
  }

  #newBuffer(): JitterBuffer {
    return new JitterBuffer({ frameTime: FRAME_MICROS, maxDelay: this.#maxDelay, frames: BUFFER_FRAMES });
  }

  /** In microseconds. */
  #now(): number {
    return Math.round(this.#clock() * 1_000);
  }

  #send(bytes: Uint8Array, isLast: boolean): void {
    if (bytes.length === 0) {
      throw new RakwireError("empty-message", "a frame must have at least one byte");
    }
    if (bytes.length > MAX_FRAME) {
      throw new RakwireError("too-long", `a frame has ${MAX_FRAME} bytes at most`);
    }
    if (this.#isMuted) {
      return;
    }
    const message = encodeFrame(this.#id, { number: this.#number, isFirst: !this.#isTalking, isLast, bytes });
    // A frame that is left out is missing at the other side, which conceals it.
    this.#number = plus(this.#number, 1);
    this.#isTalking = !isLast;
    [...this.#others].filter(([, { hears }]) => hears).forEach(([connection]) => this.#sendTo(connection, message));
  }

  #sendTo(connection: Connection, message: Uint8Array): void {
    try {
      connection.send(message, this.#delivery);
      this.#stats.sent += 1;
    } catch (error) {
      if (!(error instanceof RakwireError) || !LEFT_OUT.includes(error.code)) {
        throw error;
      }
      this.#stats.dropped += 1;
    }
  }

  #onMessage(connection: Connection, bytes: Uint8Array): void {
    const frame = decodeFrame(bytes);
    const other = this.#others.get(connection);
    if (frame === undefined) {
      this.#stats.malformed += 1;
    } else if (other !== undefined && !other.isMuted) {
      other.buffer.insert(this.#now(), frame);
    }
  }
}

/** The message of a frame. */
export function encodeFrame(id: number, { number, isFirst, isLast, bytes }: VoiceFrame): Uint8Array<ArrayBuffer> {
  const message = new Uint8Array(HEADER_LENGTH + bytes.length);
  const flags = (isFirst ? FIRST : 0) | (isLast ? LAST : 0);
  message.set([id, flags, number >> 8, number & 0xff]);
  message.set(bytes, HEADER_LENGTH);
  return message;
}

/** The frame of a message; `undefined` if there is none, or one that is too long, or an unknown flag. */
export function decodeFrame(message: Uint8Array): VoiceFrame | undefined {
  const [, flags, high, low] = message;
  const bytes = message.subarray(HEADER_LENGTH);
  if (flags === undefined || high === undefined || low === undefined || (flags & ~(FIRST | LAST)) !== 0) {
    return undefined;
  }
  if (bytes.length === 0 || bytes.length > MAX_FRAME) {
    return undefined;
  }
  return { number: (high << 8) | low, isFirst: (flags & FIRST) !== 0, isLast: (flags & LAST) !== 0, bytes };
}
