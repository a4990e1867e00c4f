/** The sound of a frame: 20 ms of one channel, as Opus has it at both sides of the wire. */

export const SAMPLE_RATE = 48_000;
export const FRAME_MS = 20;
export const FRAME_SAMPLES = (SAMPLE_RATE * FRAME_MS) / 1_000;
/** The same in the unit of buffers and of WebCodecs. */
export const FRAME_MICROS = FRAME_MS * 1_000;
