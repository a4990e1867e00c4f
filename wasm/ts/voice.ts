/** Voice chat between peers, in pages from the microphone to the loudspeaker. */

export { RakwireError } from "./errors.js";
export type { ErrorCode, RakwireErrorOptions } from "./errors.js";
export type { Playback, SpeakerStats } from "./voice/sound.js";
export { openLoudspeaker } from "./voice/loudspeaker.js";
export type { Loudspeaker, LoudspeakerOptions, LoudspeakerStats } from "./voice/loudspeaker.js";
export { openMicrophone } from "./voice/microphone.js";
export type { Microphone, MicrophoneOptions, MicrophoneStats } from "./voice/microphone.js";
export type { WorkletOptions } from "./voice/platform.js";
export { Voice } from "./voice/voice.js";
export type { VoiceOptions, VoiceStats } from "./voice/voice.js";


