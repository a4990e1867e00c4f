/** The jitter buffer of one speaker, with the rules of `rakwire_plugins::voice`. All times are in microseconds. */

/** The number of frame numbers: 0 follows 65,535. */
const NUMBERS = 0x1_0000;
/** How many arrivals say how uneven they are: at 20 ms a frame those of the last 1.3 s. */
const HISTORY = 64;
/** Of them, how many may come later than the buffer waits. */
const TOLERATED = 2;
/** How many frames in a row are concealed. What follows then is the next that has arrived; if there is none, the speaker counts as silent. */
const MAX_GAP = 5;
/** For how many frames the buffer has to be fuller than it needs until one is left out. */
const SURPLUS_FRAMES = 50;
/** After so many frames the origin of the measurement moves on, so that numbers do not outrun it. */
const MAX_SINCE = 1 << 10;
/** The largest lateness that is told apart. */
const MAX_LATENESS = 0xffff_ffff;

/** What to play: a frame, one that the decoder makes up from those before, or nothing. */
export type Playback =
  | { readonly kind: "frame"; readonly bytes: Uint8Array }
  | { readonly kind: "concealed" }
  | { readonly kind: "silence" };

/** What has become of the frames of a speaker. */
export interface SpeakerStats {
  /** Frames that arrived. */
  readonly received: number;
  /** Frames that were played. */
  readonly played: number;
  /** Frames that were missing when they were due. */
  readonly concealed: number;
  /** Frames that arrived when they had been due. */
  readonly late: number;
  /** Frames that were left out because too many were there. */
  readonly skipped: number;
}

export interface BufferSettings {
  readonly frameTime: number;
  readonly maxDelay: number;
  /** How many frames a buffer has. */
  readonly frames: number;
}

const CONCEALED: Playback = { kind: "concealed" };
const SILENCE: Playback = { kind: "silence" };

/** Keeps frames back for as long as the network is uneven, and says where one is missing. */
export class JitterBuffer {
  readonly #settings: BufferSettings;
  /** Each at the remainder of its number. */
  readonly #frames: (VoiceFrame | undefined)[];
  #phase: "silent" | "filling" | "playing" = "silent";
  /** Until when the first frame is kept back. */
  #until = 0;
  /** The number of the frame that is due next. */
  #next = 0;
  /** The highest number that has arrived. */
  #highest = 0;
  /** The beginning of what is being said, and when it would have arrived if it had been as quick as the quickest. */
  #first = 0;
  #quickest = 0;
  /** By how much the last arrivals were later than the quickest. */
  readonly #lateness: number[] = [];
  /** Frames in a row that were missing. */
  #gap = 0;
  /** Frames in a row at which more were there than are needed. */
  #surplus = 0;
  readonly #stats = { received: 0, played: 0, concealed: 0, late: 0, skipped: 0 };

  constructor(settings: BufferSettings) {
    this.#settings = settings;
    this.#frames = Array<VoiceFrame | undefined>(settings.frames).fill(undefined);
  }

  get isSilent(): boolean {
    return this.#phase === "silent";
  }

  stats(): SpeakerStats {
    return { ...this.#stats };
  }

  /** How long the first frame is kept back: by how much all but the latest arrivals were later than the earliest, and half of a frame. */
  get delay(): number {
    const { frameTime, maxDelay, frames } = this.#settings;
    const latest = [...this.#lateness].sort((a, b) => b - a);
    const earliest = latest.at(-1) ?? 0;
    const uneven = (latest[TOLERATED] ?? earliest) - earliest;
    return Math.min(uneven + frameTime / 2, maxDelay, frameTime * (frames - 1));
  }

  /** A frame has arrived. Its bytes stay the caller's, so they must not change. */
  insert(now: number, frame: VoiceFrame): void {
    const { number, isFirst } = frame;
    this.#stats.received += 1;
    const distance = ahead(number, this.#next);
    if (this.isSilent || (distance >= this.#settings.frames && !isBehind(distance))) {
      this.#begin(now, number);
    } else if (isBehind(distance)) {
      this.#stats.late += 1;
      this.#observe(now, number);
      return;
    }
    if (isFirst) {
      // After a pause, which says nothing of the network.
      [this.#first, this.#quickest] = [number, now];
    }
    this.#observe(now, number);
    if (!isBehind(ahead(number, this.#highest))) {
      this.#highest = number;
    }
    this.#frames[number % this.#frames.length] = frame;
  }

  /** The next frame, which is due now. */
  play(now: number): Playback {
    if (this.isSilent || (this.#phase === "filling" && now < this.#until)) {
      return SILENCE;
    }
    if (this.#phase === "filling") {
      this.#phase = "playing";
    } else {
      this.#skipSurplus();
    }
    if (this.#gap >= MAX_GAP) {
      this.#next = this.#nextPresent() ?? this.#next;
    }
    const frame = this.#take();
    if (frame === undefined) {
      return this.#conceal();
    }
    this.#next = plus(this.#next, 1);
    this.#gap = 0;
    this.#stats.played += 1;
    if (frame.isLast) {
      this.#endSentence(now);
    }
    return { kind: "frame", bytes: frame.bytes };
  }

  /** Somebody begins to speak, or what is there is of long ago. */
  #begin(now: number, number: number): void {
    this.#frames.fill(undefined);
    this.#next = this.#highest = this.#first = number;
    this.#quickest = now;
    this.#gap = this.#surplus = 0;
    this.#fill(now);
  }

  #fill(now: number): void {
    this.#phase = "filling";
    this.#until = now + this.delay;
  }

  /** Learns how late a frame is beside the quickest of what is being said. */
  #observe(now: number, number: number): void {
    const since = ahead(number, this.#first);
    // One from before the first is no measure of those behind it.
    if (isBehind(since)) {
      return;
    }
    const { frameTime } = this.#settings;
    const late = now - (this.#quickest + frameTime * since);
    this.#quickest = Math.max(0, this.#quickest + Math.min(late, 0));
    this.#lateness.push(Math.min(Math.max(late, 0), MAX_LATENESS));
    if (this.#lateness.length > HISTORY) {
      this.#lateness.shift();
    }
    if (since >= MAX_SINCE) {
      this.#quickest += frameTime * since;
      this.#first = number;
    }
  }

  /** Nobody speaks any more, unless the next sentence has begun to arrive. */
  #endSentence(now: number): void {
    const next = this.#nextPresent();
    if (next === undefined) {
      this.#phase = "silent";
    } else {
      this.#next = next;
      this.#fill(now);
    }
  }

  /** The number of the next frame that has arrived, from the one that is due. */
  #nextPresent(): number | undefined {
    const numbers = Array.from({ length: Math.min(this.#waiting, this.#frames.length) }, (_, distance) => plus(this.#next, distance));
    return numbers.find((number) => this.#frames[number % this.#frames.length]?.number === number);
  }

  #take(): VoiceFrame | undefined {
    const place = this.#next % this.#frames.length;
    const frame = this.#frames[place];
    if (frame?.number !== this.#next) {
      return undefined;
    }
    this.#frames[place] = undefined;
    return frame;
  }

  /** The frame that is due is not there. If later ones are, it is lost; otherwise it may come, and is waited for. */
  #conceal(): Playback {
    if (this.#waiting > 0) {
      this.#next = plus(this.#next, 1);
    }
    this.#gap += 1;
    if (this.#gap > MAX_GAP) {
      this.#phase = "silent";
      return SILENCE;
    }
    this.#stats.concealed += 1;
    return CONCEALED;
  }

  /** How many frames the last that has arrived is ahead of the one that is due, itself included. */
  get #waiting(): number {
    const distance = ahead(this.#highest, this.#next);
    return isBehind(distance) ? 0 : distance + 1;
  }

  /** Leaves a frame out when more have been there than are needed for long. */
  #skipSurplus(): void {
    const needed = Math.ceil(this.delay / Math.max(this.#settings.frameTime, 1)) + 1;
    if (this.#waiting <= needed) {
      this.#surplus = 0;
      return;
    }
    this.#surplus += 1;
    if (this.#surplus >= SURPLUS_FRAMES) {
      this.#surplus = 0;
      if (this.#take() !== undefined) {
        this.#stats.skipped += 1;
      }
      this.#next = plus(this.#next, 1);
    }
  }
}

/** A frame of voice that arrived, or is to be sent. */
export interface VoiceFrame {
  readonly number: number;
  /** It begins what a speaker says: nothing before it is missing. */
  readonly isFirst: boolean;
  /** It ends what a speaker says: nothing follows it for a while. */
  readonly isLast: boolean;
  readonly bytes: Uint8Array;
}

/** The number that is ahead of another one by a distance, which may be negative. */
export const plus = (number: number, distance: number): number => (number + distance) & (NUMBERS - 1);

/** How far a number is ahead of another one; half of all numbers and more are behind it. */
const ahead = (number: number, from: number): number => plus(number, -from);

/** Whether a distance by {@link ahead} is that of an earlier number. */
const isBehind = (distance: number): boolean => distance >= NUMBERS / 2;
