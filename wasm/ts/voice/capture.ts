/** The sound of a track of a microphone, as blocks of one channel. */

import { mixDown } from "./framer.js";
import type { WorkletOptions } from "./platform.js";
import { createContext, loadWorklet, start } from "./platform.js";
import { SAMPLE_RATE } from "./format.js";
import { CAPTURE } from "./worklet-messages.js";

/** Gets blocks of any length. */
export interface CaptureEvents {
  onBlock(block: Float32Array, sampleRate: number): void;
  /** Nothing follows. */
  onEnd(cause?: unknown): void;
}

interface TrackProcessor {
  readonly readable: ReadableStream<AudioData>;
}
type TrackProcessorConstructor = new (init: { track: MediaStreamTrack }) => TrackProcessor;

/** Begins to capture, and returns what ends it. */
export async function capture(track: MediaStreamTrack, events: CaptureEvents, options: WorkletOptions): Promise<() => void> {
  // The types of the platform do not have it, since not every browser has it in pages.
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

export function channelsOf(data: AudioData): Float32Array<ArrayBuffer>[] {
  return Array.from({ length: data.numberOfChannels }, (_, planeIndex) => {
    const channel = new Float32Array(data.numberOfFrames);
    data.copyTo(channel, { planeIndex, format: "f32-planar" });
    return channel;
  });
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
