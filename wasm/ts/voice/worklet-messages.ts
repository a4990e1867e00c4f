/** What a page and its audio worklet have in common. */

export const PLAYBACK = "rakwire-voice-playback";
export const CAPTURE = "rakwire-voice-capture";

/** To the processor for playback, which answers with how many frames are due. */
export type FromPage = "close" | { readonly speaker: number; readonly samples: Float32Array };
