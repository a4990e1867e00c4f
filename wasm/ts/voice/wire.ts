/** What stands before a frame of voice (docs/plugins/voice.md). */

/** Bytes before a frame: the id, the flags and the number. */
export const HEADER_LENGTH = 4;
/** The longest frame: the smallest MTU carries it in one datagram, or in two if the connection is secure. */
export const MAX_FRAME = 508;
/** Numbers go on from 65,535 to 0. */
const NUMBERS = 0x1_0000;
const FIRST = 1;
const LAST = 2;

export interface FrameHeader {
  readonly number: number;
  /** It begins what somebody says: nothing before it is missing. */
  readonly isFirst: boolean;
  /** It ends what somebody says: nothing follows it for a while. */
  readonly isLast: boolean;
}

export interface VoiceFrame extends FrameHeader {
  readonly bytes: Uint8Array;
}

/** A number that is so far behind another one, or before it. */
export const plus = (number: number, distance: number): number => (number + distance) & (NUMBERS - 1);

/** How far a number is ahead of another one; half of all numbers and more are behind it. */
export const ahead = (number: number, from: number): number => plus(number, -from);

/** Whether a distance by {@link ahead} is that of an earlier number. */
export const isBehind = (distance: number): boolean => distance >= NUMBERS / 2;

export function encodeFrame(id: number, { number, isFirst, isLast, bytes }: VoiceFrame): Uint8Array<ArrayBuffer> {
  const message = new Uint8Array(HEADER_LENGTH + bytes.length);
  const flags = (isFirst ? FIRST : 0) | (isLast ? LAST : 0);
  message.set([id, flags, number >> 8, number & 0xff]);
  message.set(bytes, HEADER_LENGTH);
  return message;
}

/** What a message says; `undefined` if it has no frame, one that is too long, or flags that nobody knows. */
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
