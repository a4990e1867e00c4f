/** From the peers of a voice to a loudspeaker: decoded by WebCodecs, mixed and played by an audio worklet. */

import { RakwireError } from "../errors.js";
import { checkNames } from "../options.js";
import type { Connection } from "../types.js";
import { SAMPLE_RATE } from "./format.js";
import type { WorkletOptions } from "./platform.js";
import { createContext, loadWorklet, OPUS, requireCodec, start, WORKLET_OPTIONS } from "./platform.js";
import type { LoudspeakerStats } from "./speaker-sound.js";
import { SpeakerSound } from "./speaker-sound.js";
import type { Voice } from "./voice.js";
import { PLAYBACK } from "./worklet-messages.js";

/** How a loudspeaker is opened. */
export interface LoudspeakerOptions extends WorkletOptions {
  /** Where the sound goes, a node of a context with 48,000 samples a second. By default to the loudspeaker of a context of its own. */
  destination?: AudioNode;
}

/** A loudspeaker that is open. */
export interface Loudspeaker {
  /** Browsers let it play once the player has clicked or typed something; then call its `resume`. */
  readonly context: BaseAudioContext;
  close(): void;
  stats(): LoudspeakerStats;
}

/**
 * Plays what all say who have joined `voice`.
 *
 * @throws RakwireError with the code `voice-unavailable` or `bad-option`.
 */
export async function openLoudspeaker(voice: Voice, options: LoudspeakerOptions = {}): Promise<Loudspeaker> {
  checkNames(options, [...WORKLET_OPTIONS, "destination"]);
  await requireCodec("AudioDecoder", globalThis.AudioDecoder, OPUS);
  const { destination } = options;
  if (destination !== undefined && destination.context.sampleRate !== SAMPLE_RATE) {
    throw new RakwireError("bad-option", `destination must be of a context with ${SAMPLE_RATE} samples a second`);
  }
  const own = destination === undefined ? createContext() : undefined;
  const target = destination ?? (own as AudioContext).destination;
  try {
    await loadWorklet(target.context, options);
  } catch (error) {
    void own?.close();
    throw error;
  }
  if (own !== undefined) {
    start(own);
  }
  return new OpenLoudspeaker(voice, target, own);
}

class OpenLoudspeaker implements Loudspeaker {
  readonly context: BaseAudioContext;
  readonly #voice: Voice;
  readonly #own: AudioContext | undefined;
  readonly #node: AudioWorkletNode;
  readonly #sounds = new Map<Connection, SpeakerSound>();
  readonly #stats = { decoded: 0, concealed: 0, malformed: 0 };
  #speakers = 0;

  constructor(voice: Voice, target: AudioNode, own: AudioContext | undefined) {
    this.#voice = voice;
    this.context = target.context;
    this.#own = own;
    this.#node = new AudioWorkletNode(target.context, PLAYBACK, { numberOfInputs: 0, outputChannelCount: [1] });
    this.#node.port.onmessage = ({ data }: MessageEvent<number>) => this.#onDue(data);
    this.#node.connect(target);
  }

  close(): void {
    this.#node.port.onmessage = null;
    this.#node.port.postMessage("close");
    this.#node.disconnect();
    this.#sounds.forEach((sound) => sound.close());
    this.#sounds.clear();
    if (this.#own !== undefined && this.#own.state !== "closed") {
      void this.#own.close();
    }
  }

  stats(): LoudspeakerStats {
    return { ...this.#stats };
  }

  /** So many frames are due, as the clock of the loudspeaker says, which no browser slows down in pages that nobody sees. */
  #onDue(frames: number): void {
    for (const [connection, sound] of this.#sounds) {
      if (!this.#voice.has(connection)) {
        sound.close();
        this.#sounds.delete(connection);
      }
    }
    for (const connection of this.#voice.speakers()) {
      const sound = this.#sounds.get(connection) ?? this.#add(connection);
      for (let frame = 0; frame < frames; frame++) {
        sound.play(this.#voice.play(connection));
      }
    }
  }

  #add(connection: Connection): SpeakerSound {
    const speaker = this.#speakers;
    this.#speakers += 1;
    const sound = new SpeakerSound(this.#stats, (samples) => this.#node.port.postMessage({ speaker, samples }, [samples.buffer]));
    this.#sounds.set(connection, sound);
    return sound;
  }
}
