/** Voice chat without audio: speakers, listeners, and the wire format (docs/plugins/voice.md). */

import { RakwireError } from "../errors.js";
import { checkNames, readInteger } from "../options.js";
import { attachUntilEnd } from "../plugin/connection.js";
import { FIRST_FREE_ID } from "../sending.js";
import type { Connection, Message, SendOptions } from "../types.js";
import type { Playback, SpeakerStats, VoiceFrame } from "./sound.js";
import { FRAME_MICROS, JitterBuffer, plus } from "./sound.js";

/** The length of the header in bytes: id, flags and number. */
const HEADER_LENGTH = 4;
/** The maximum frame size in bytes. It fits into one datagram of the smallest MTU, or two on a secure connection. */
const MAX_FRAME = 508;
/** Flags of the first and the last frame of a talk spurt. */
const FIRST = 1;
const LAST = 2;

/** The capacity of a jitter buffer in frames. It exceeds the longest delay. */
const BUFFER_FRAMES = 16;
const MAX_DELAY_MS = ((BUFFER_FRAMES - 1) * FRAME_MICROS) / 1_000;
/** Error codes of `send` that drop a frame without an exception. */
const LEFT_OUT: readonly string[] = ["queue-full", "not-connected", "not-sent"];

/** The settings of a {@link Voice}. */
export interface VoiceOptions {
  /** The message id, 134 or above. It must be the same at all peers. */
  id: number;
  /** The ordering channel, 0 to 31. It must not carry other sequenced messages. Default: 31. */
  channel?: number;
  /**
   * The maximum delay of a jitter buffer in milliseconds. Longer delays make people interrupt each other. Default: 200.
   */
  maxDelayMs?: number;
}

/** Counters of voice chat. */
export interface VoiceStats {
  /** Frames that were sent, counted for each recipient. */
  readonly sent: number;
  /** Frames that were dropped because the send memory of a connection was full. */
  readonly dropped: number;
  /** Messages that cannot be decoded. */
  readonly malformed: number;
}

interface Other {
  buffer: JitterBuffer;
  /** True if this peer sends its frames to the peer. */
  isRecipient: boolean;
  /** True if this peer discards the frames of the peer. */
  isMuted: boolean;
  readonly detach: () => void;
}

/**
 * Exchanges encoded audio frames of 20 ms with the peers of connections. It does not depend on a codec or on audio
 * devices. In pages, {@link openMicrophone} and {@link openLoudspeaker} add those.
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
   * Creates a voice that exchanges frames with all peers that join.
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
   * Adds the peer of a RakNet connection, until the connection closes or {@link leave} is called.
   *
   * @throws RakwireError with the code `bad-option` if another plugin of the connection has the id.
   */
  join(connection: Connection): void {
    if (this.#others.has(connection)) {
      return;
    }
    const plugin = { ids: [this.#id], onMessage: ({ bytes }: Message) => this.#onMessage(connection, bytes) };
    const detach = attachUntilEnd(connection, plugin, () => this.leave(connection));
    this.#others.set(connection, { buffer: this.#newBuffer(), isRecipient: true, isMuted: false, detach });
  }

  /** Removes the peer of a connection. */
  leave(connection: Connection): void {
    this.#others.get(connection)?.detach();
    this.#others.delete(connection);
  }

  /** Returns true if a connection has joined. */
  has(connection: Connection): boolean {
    return this.#others.has(connection);
  }

  /**
   * Sends a frame of 1 to 508 bytes. Call it every 20 ms during speech. Sends nothing while this peer is muted.
   *
   * @throws RakwireError with the code `empty-message` or `too-long`, or the code of a connection with a protocol
   * without sequenced messages.
   */
  talk(frame: Uint8Array): void {
    this.#send(frame, false);
  }

  /**
   * Sends the last frame of a talk spurt. The receivers then stop immediately; without it, they wait for five frames.
   *
   * @throws RakwireError for the same reasons as {@link talk}.
   */
  talkLast(frame: Uint8Array): void {
    this.#send(frame, true);
  }

  /** True if this peer sends nothing. */
  get isMuted(): boolean {
    return this.#isMuted;
  }

  set isMuted(isMuted: boolean) {
    this.#isMuted = isMuted;
    this.#isTalking &&= !isMuted;
  }

  /** Sets whether the frames of a peer are discarded. Returns false if its connection has not joined. */
  mute(connection: Connection, isMuted: boolean): boolean {
    const other = this.#others.get(connection);
    if (other !== undefined) {
      [other.isMuted, other.buffer] = [isMuted, this.#newBuffer()];
    }
    return other !== undefined;
  }

  /**
   * Sets whether this peer sends its frames to a peer, for teams or proximity. Returns false if its connection has not
   * joined.
   */
  setRecipient(connection: Connection, isRecipient: boolean): boolean {
    const other = this.#others.get(connection);
    if (other !== undefined) {
      other.isRecipient = isRecipient;
    }
    return other !== undefined;
  }

  /** Returns the connections that have sound to play, or had a moment ago. */
  speakers(): Connection[] {
    return [...this.#others].filter(([, { buffer }]) => !buffer.isSilent).map(([connection]) => connection);
  }

  /** Returns the next sound of a speaker. A loudspeaker calls it every 20 ms. */
  play(connection: Connection): Playback {
    return this.#others.get(connection)?.buffer.play(this.#now()) ?? { kind: "silence" };
  }

  /** Returns the current jitter buffer delay of a speaker in milliseconds; `undefined` if it has not joined. */
  delayMs(connection: Connection): number | undefined {
    const delay = this.#others.get(connection)?.buffer.delay;
    return delay === undefined ? undefined : delay / 1_000;
  }

  /** Returns the counters of a speaker; `undefined` if it has not joined. */
  speakerStats(connection: Connection): SpeakerStats | undefined {
    return this.#others.get(connection)?.buffer.stats();
  }

  stats(): VoiceStats {
    return { ...this.#stats };
  }

  #newBuffer(): JitterBuffer {
    return new JitterBuffer({ frameTime: FRAME_MICROS, maxDelay: this.#maxDelay, frames: BUFFER_FRAMES });
  }

  /** Returns the time in microseconds. */
  #now(): number {
    return Math.round(this.#clock() * 1_000);
  }

  #send(bytes: Uint8Array, isLast: boolean): void {
    if (bytes.length === 0) {
      throw new RakwireError("empty-message", "a frame must have at least one byte");
    }
    if (bytes.length > MAX_FRAME) {
      throw new RakwireError("too-long", `a frame may have at most ${MAX_FRAME} bytes`);
    }
    if (this.#isMuted) {
      return;
    }
    const message = encodeFrame(this.#id, { number: this.#number, isFirst: !this.#isTalking, isLast, bytes });
    // A dropped frame leaves a gap in the numbers, which the receiver conceals.
    this.#number = plus(this.#number, 1);
    this.#isTalking = !isLast;
    [...this.#others].filter(([, { isRecipient }]) => isRecipient).forEach(([connection]) => this.#sendTo(connection, message));
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

/** Encodes a frame. */
export function encodeFrame(id: number, { number, isFirst, isLast, bytes }: VoiceFrame): Uint8Array<ArrayBuffer> {
  const message = new Uint8Array(HEADER_LENGTH + bytes.length);
  const flags = (isFirst ? FIRST : 0) | (isLast ? LAST : 0);
  message.set([id, flags, number >> 8, number & 0xff]);
  message.set(bytes, HEADER_LENGTH);
  return message;
}

/** Decodes a frame; `undefined` if the message has no frame, a frame that is too long, or an unknown flag. */
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
