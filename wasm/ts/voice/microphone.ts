/** Records a microphone and sends it to the peers of a voice, as mono Opus frames that WebCodecs encodes. */

import { fromThrown, RakwireError } from "../errors.js";
import { checkNames, readInteger } from "../options.js";
import type { WorkletOptions } from "./platform.js";
import { channelsOf, createContext, loadWorklet, OPUS, requireCodec, start, WORKLET_OPTIONS } from "./platform.js";
import { CAPTURE, FRAME_MICROS, FRAME_MS, Framer, mixDown, SAMPLE_RATE } from "./sound.js";
import type { Voice } from "./voice.js";

/** The range of bit rates for speech, equal to that of the native encoder. */
const [MIN_BITS, MAX_BITS] = [6_000, 64_000];
/** The number of frames in the encoder above which further frames are dropped. */
const MAX_ENCODING = 8;
const SPEECH = { application: "voip", signal: "voice", frameDuration: FRAME_MICROS } as const;
const REFUSALS: readonly string[] = ["NotAllowedError", "SecurityError"];

/** Options of a microphone. */
export interface MicrophoneOptions extends WorkletOptions {
  /**
   * The bit rate, 6,000 to 64,000 bit/s. Speech is understandable at 8,000 and good at 24,000. The rate is constant:
   * all frames have the same length. Default: 24,000.
   */
  bitsPerSecond?: number;
  /** True to send nothing until {@link Microphone.startTalking} is called. Default: false. */
  isPushToTalk?: boolean;
  /** Constraints that select the microphone and its processing. Default: echo cancellation and noise suppression. */
  constraints?: MediaTrackConstraints;
  /** An audio track of the application to use instead of the microphone. It is not stopped on close. */
  track?: MediaStreamTrack;
}

/** Counters of a microphone. */
export interface MicrophoneStats {
  /** Frames that were recorded, sent or not. */
  readonly recorded: number;
  /** Frames that were encoded. */
  readonly encoded: number;
  /** Frames that were dropped because the encoder was too slow. */
  readonly dropped: number;
}

/** An open microphone. */
export interface Microphone {
  /** True while sound is recorded for sending. A muted voice still sends nothing. */
  readonly isTalking: boolean;
  /** Starts sending, for example while a push-to-talk key is pressed. */
  startTalking(): void;
  /** Stops sending after one last frame, for example when the push-to-talk key is released. */
  stopTalking(): void;
  /** Resolves when the microphone was closed, or with the error if it stopped by itself. Never rejects. */
  readonly closed: Promise<RakwireError | undefined>;
  close(): void;
  stats(): MicrophoneStats;
}

/**
 * Records a microphone and sends the sound through `voice`.
 *
 * @throws RakwireError with the code `bad-option`, `voice-unavailable`, `microphone-unavailable` or
 * `microphone-refused`.
 */
export async function openMicrophone(voice: Voice, options: MicrophoneOptions = {}): Promise<Microphone> {
  const { bitsPerSecond = 24_000, isPushToTalk = false } = options;
  checkNames(options, [...WORKLET_OPTIONS, "bitsPerSecond", "isPushToTalk", "constraints", "track"]);
  const bitrate = readInteger("bitsPerSecond", bitsPerSecond, MIN_BITS, MAX_BITS);
  await requireCodec("AudioEncoder", globalThis.AudioEncoder, encoderConfig(SAMPLE_RATE, bitrate));
  const track = options.track ?? (await record(options.constraints));
  const microphone = new OpenMicrophone(voice, track, bitrate, !isPushToTalk, options.track === undefined);
  await microphone.begin(options);
  return microphone;
}

async function record(constraints: MediaTrackConstraints = {}): Promise<MediaStreamTrack> {
  const audio = { channelCount: 1, echoCancellation: true, noiseSuppression: true, autoGainControl: true, ...constraints };
  try {
    // Only `https` pages and pages from the local machine can access microphones.
    const [track] = (await navigator.mediaDevices.getUserMedia({ audio })).getAudioTracks();
    return track as MediaStreamTrack;
  } catch (cause) {
    throw cause instanceof DOMException && REFUSALS.includes(cause.name)
      ? new RakwireError("microphone-refused", "the user or the page's permissions policy does not allow the microphone", { cause })
      : new RakwireError("microphone-unavailable", "no microphone can be opened; is one connected, and is this an https page?", { cause });
  }
}

function encoderConfig(sampleRate: number, bitrate: number): AudioEncoderConfig {
  // Frames of varying length would reveal parts of the speech to an observer of encrypted traffic.
  return { ...OPUS, sampleRate, bitrate, bitrateMode: "constant", opus: SPEECH };
}

class OpenMicrophone implements Microphone {
  readonly #voice: Voice;
  readonly #track: MediaStreamTrack;
  readonly #bitrate: number;
  readonly #isOwned: boolean;
  readonly closed: Promise<RakwireError | undefined>;
  #settle!: (error: RakwireError | undefined) => void;
  #isTalking: boolean;
  /** True if the next frame is the last one of the talk spurt. */
  #isEnding = false;
  #isClosed = false;
  #endCapture: (() => void) | undefined;
  #framer: Framer | undefined;
  #encoder: AudioEncoder | undefined;
  #sampleRate = 0;
  /** The timestamps of the next frame and of the last frame of the talk spurt. */
  #time = 0;
  #lastTime = Infinity;
  readonly #stats = { recorded: 0, encoded: 0, dropped: 0 };

  constructor(voice: Voice, track: MediaStreamTrack, bitrate: number, isTalking: boolean, isOwned: boolean) {
    this.#voice = voice;
    this.#track = track;
    this.#bitrate = bitrate;
    this.#isTalking = isTalking;
    this.#isOwned = isOwned;
    this.closed = new Promise((resolve) => (this.#settle = resolve));
  }

  get isTalking(): boolean {
    return this.#isTalking;
  }

  startTalking(): void {
    [this.#isTalking, this.#isEnding] = [true, false];
  }

  stopTalking(): void {
    this.#isEnding ||= this.#isTalking;
    this.#isTalking = false;
  }

  close(): void {
    this.#end(undefined);
  }

  stats(): MicrophoneStats {
    return { ...this.#stats };
  }

  async begin(options: WorkletOptions): Promise<void> {
    const events = {
      onBlock: (block: Float32Array, sampleRate: number) => this.#onBlock(block, sampleRate),
      onEnd: (cause?: unknown) => this.#end(new RakwireError("microphone-unavailable", "the microphone stopped; was it unplugged?", { cause })),
    };
    try {
      this.#endCapture = await capture(this.#track, events, options);
    } catch (error) {
      this.close();
      throw error;
    }
    if (this.#isClosed) {
      this.#endCapture();
    }
  }

  #onBlock(block: Float32Array, sampleRate: number): void {
    if (this.#framer === undefined || sampleRate !== this.#sampleRate) {
      this.#sampleRate = sampleRate;
      this.#framer = new Framer(Math.round((sampleRate * FRAME_MS) / 1_000));
      this.#configure();
    }
    this.#framer.push(block).forEach((frame) => this.#onFrame(frame));
  }

  /** Creates an encoder for the current format of the microphone. */
  #configure(): void {
    if (this.#isClosed) {
      return;
    }
    this.#encoder?.close();
    this.#encoder = new AudioEncoder({
      output: (chunk) => this.#onEncoded(chunk),
      error: (cause) => this.#end(new RakwireError("voice-unavailable", "the Opus encoder failed", { cause })),
    });
    this.#encoder.configure(encoderConfig(this.#sampleRate, this.#bitrate));
  }

  #onFrame(frame: Float32Array<ArrayBuffer>): void {
    this.#stats.recorded += 1;
    if (this.#isClosed || this.#encoder === undefined || this.#voice.isMuted || !(this.#isTalking || this.#isEnding)) {
      this.#isEnding = false;
      return;
    }
    if (this.#encoder.encodeQueueSize >= MAX_ENCODING) {
      this.#stats.dropped += 1;
      return;
    }
    this.#lastTime = this.#isEnding ? this.#time : Infinity;
    this.#isEnding = false;
    const timestamp = this.#time;
    const data = new AudioData({ format: "f32-planar", sampleRate: this.#sampleRate, numberOfFrames: frame.length, numberOfChannels: 1, timestamp, data: frame });
    this.#encoder.encode(data);
    data.close();
    this.#time += FRAME_MICROS;
  }

  #onEncoded(chunk: EncodedAudioChunk): void {
    this.#stats.encoded += 1;
    const bytes = new Uint8Array(chunk.byteLength);
    chunk.copyTo(bytes);
    try {
      if (chunk.timestamp >= this.#lastTime) {
        this.#voice.talkLast(bytes);
      } else {
        this.#voice.talk(bytes);
      }
    } catch (error) {
      this.#end(fromThrown(error));
    }
  }

  #end(error: RakwireError | undefined): void {
    if (this.#isClosed) {
      return;
    }
    this.#isClosed = true;
    this.#endCapture?.();
    if (this.#encoder?.state === "configured") {
      this.#encoder.close();
    }
    if (this.#isOwned) {
      this.#track.stop();
    }
    this.#settle(error);
  }
}

/** Receives recorded sound in blocks of any length. */
export interface CaptureEvents {
  onBlock(block: Float32Array, sampleRate: number): void;
  /** Called once after the last block. */
  onEnd(cause?: unknown): void;
}

interface TrackProcessor {
  readonly readable: ReadableStream<AudioData>;
}
type TrackProcessorConstructor = new (init: { track: MediaStreamTrack }) => TrackProcessor;

/** Starts capturing a track. Returns a function that stops it. */
async function capture(track: MediaStreamTrack, events: CaptureEvents, options: WorkletOptions): Promise<() => void> {
  // Not every browser has it in pages, so TypeScript does not declare it.
  const { MediaStreamTrackProcessor } = globalThis as { MediaStreamTrackProcessor?: TrackProcessorConstructor };
  return MediaStreamTrackProcessor === undefined
    ? captureByWorklet(track, events, options)
    : captureByReader(new MediaStreamTrackProcessor({ track }).readable, events);
}

function captureByReader(readable: ReadableStream<AudioData>, events: CaptureEvents): () => void {
  const reader = readable.getReader();
  void readAll(reader, events).then(() => events.onEnd(), (cause: unknown) => events.onEnd(cause));
  return () => void reader.cancel().catch(() => undefined);
}

async function readAll(reader: ReadableStreamDefaultReader<AudioData>, events: CaptureEvents): Promise<void> {
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    const { value } = next;
    const block = mixDown(channelsOf(value));
    const { sampleRate } = value;
    value.close();
    events.onBlock(block, sampleRate);
  }
}

async function captureByWorklet(track: MediaStreamTrack, events: CaptureEvents, options: WorkletOptions): Promise<() => void> {
  const context = createContext();
  const onEnded = (): void => events.onEnd();
  const close = (): void => {
    track.removeEventListener("ended", onEnded);
    void context.close();
  };
  try {
    await loadWorklet(context, options);
    const node = new AudioWorkletNode(context, CAPTURE, { numberOfOutputs: 0 });
    node.port.onmessage = ({ data }: MessageEvent<Float32Array>) => events.onBlock(data, SAMPLE_RATE);
    context.createMediaStreamSource(new MediaStream([track])).connect(node);
    track.addEventListener("ended", onEnded);
    start(context);
    return close;
  } catch (error) {
    close();
    throw error;
  }
}
