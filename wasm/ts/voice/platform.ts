/** What pages have for sound, and the errors where that is missing. */

import source from "../../pkg/voice-worklet-source.js";
import { RakwireError } from "../errors.js";
import { SAMPLE_RATE } from "./sound.js";

/** A page that cannot load scripts from `blob:` names the file of the worklet. */
export interface WorkletOptions {
  /**
   * Where the page has the file `rakwire/voice-worklet.js`, for pages whose content security policy forbids scripts from
   * `blob:`.
   */
  workletUrl?: string | URL;
}

/** The names of {@link WorkletOptions}. */
export const WORKLET_OPTIONS = ["workletUrl"];

interface Support {
  readonly supported?: boolean;
}

/** Opus of one channel, for the decoder of WebCodecs, or with more for its encoder. */
export const OPUS = { codec: "opus", sampleRate: SAMPLE_RATE, numberOfChannels: 1 } as const;

export const voiceUnavailable = (what: string, options?: ErrorOptions): RakwireError =>
  new RakwireError("voice-unavailable", `this platform has no ${what}, which voice needs`, options);

/** Checks that there is an encoder or decoder with this configuration. */
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

/** A context whose sound needs no conversion. */
export function createContext(): AudioContext {
  if (typeof AudioContext !== "function" || typeof AudioWorkletNode !== "function") {
    throw voiceUnavailable("AudioWorklet");
  }
  return new AudioContext({ sampleRate: SAMPLE_RATE });
}

/** Has a context run as soon as the browser lets it, which may be never: nobody waits for that. */
export function start(context: AudioContext): void {
  context.resume().catch(() => undefined);
}

let sourceUrl: string | undefined;

/** Loads the processors into a context, which loads the same file only once. */
export async function loadWorklet({ audioWorklet }: BaseAudioContext, { workletUrl }: WorkletOptions): Promise<void> {
  sourceUrl ??= URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  try {
    await audioWorklet.addModule(workletUrl ?? sourceUrl);
  } catch (cause) {
    throw new RakwireError("voice-unavailable", "the worklet cannot be loaded; see workletUrl", { cause });
  }
}

/** What this needs of `AudioData`, which older versions of TypeScript do not know. */
interface PlanarAudio {
  readonly numberOfChannels: number;
  readonly numberOfFrames: number;
  copyTo(destination: Float32Array<ArrayBuffer>, options: { planeIndex: number; format: "f32-planar" }): void;
}

/** The channels of what a decoder or a track gives. */
export function channelsOf(data: PlanarAudio): Float32Array<ArrayBuffer>[] {
  return Array.from({ length: data.numberOfChannels }, (_, planeIndex) => {
    const channel = new Float32Array(data.numberOfFrames);
    data.copyTo(channel, { planeIndex, format: "f32-planar" });
    return channel;
  });
}
