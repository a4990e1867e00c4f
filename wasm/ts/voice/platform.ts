/** The audio features of pages, and the errors when they are missing. */

import source from "../../pkg/voice-worklet-source.js";
import { RakwireError } from "../errors.js";
import { SAMPLE_RATE } from "./sound.js";

/** Options for pages that cannot load scripts from `blob:` URLs. */
export interface WorkletOptions {
  /**
   * The URL of the file `rakwire/voice-worklet.js`, for pages with a content security policy that forbids scripts from
   * `blob:`.
   */
  workletUrl?: string | URL;
}

/** The names of {@link WorkletOptions}. */
export const WORKLET_OPTIONS = ["workletUrl"];

interface Support {
  readonly supported?: boolean;
}

/** Opus with one channel, for the decoder of WebCodecs, or with more members for its encoder. */
export const OPUS = { codec: "opus", sampleRate: SAMPLE_RATE, numberOfChannels: 1 } as const;

export const voiceUnavailable = (what: string, options?: ErrorOptions): RakwireError =>
  new RakwireError("voice-unavailable", `voice needs ${what}, which this platform does not have`, options);

/** Throws if the platform has no encoder or decoder for this configuration. */
export async function requireCodec<T>(name: string, codec: { isConfigSupported(config: T): Promise<Support> } | undefined, config: T): Promise<void> {
  if (codec === undefined) {
    throw voiceUnavailable(name);
  }
  const { supported } = await codec.isConfigSupported(config).catch((cause: unknown) => {
    throw voiceUnavailable(`${name} for Opus`, { cause });
  });
  if (supported !== true) {
    throw voiceUnavailable(`${name} for Opus`);
  }
}

/** Creates a context at 48,000 samples per second, so that no resampling is needed. */
export function createContext(): AudioContext {
  if (typeof AudioContext !== "function" || typeof AudioWorkletNode !== "function") {
    throw voiceUnavailable("AudioWorklet");
  }
  return new AudioContext({ sampleRate: SAMPLE_RATE });
}

/** Starts a context as soon as the browser allows it. That may never happen, so do not await it. */
export function start(context: AudioContext): void {
  context.resume().catch(() => undefined);
}

let sourceUrl: string | undefined;

/** Loads the processors into a context. A context loads each file only once. */
export async function loadWorklet({ audioWorklet }: BaseAudioContext, { workletUrl }: WorkletOptions): Promise<void> {
  sourceUrl ??= URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  try {
    await audioWorklet.addModule(workletUrl ?? sourceUrl);
  } catch (cause) {
    throw new RakwireError("voice-unavailable", "the audio worklet cannot be loaded; if the page's policy forbids blob: scripts, set workletUrl", { cause });
  }
}

/** Members of `AudioData` that older versions of TypeScript do not declare. */
interface PlanarAudio {
  readonly numberOfChannels: number;
  readonly numberOfFrames: number;
  copyTo(destination: Float32Array<ArrayBuffer>, options: { planeIndex: number; format: "f32-planar" }): void;
}

/** Copies the channels of audio data from a decoder or a track. */
export function channelsOf(data: PlanarAudio): Float32Array<ArrayBuffer>[] {
  return Array.from({ length: data.numberOfChannels }, (_, planeIndex) => {
    const channel = new Float32Array(data.numberOfFrames);
    data.copyTo(channel, { planeIndex, format: "f32-planar" });
    return channel;
  });
}
