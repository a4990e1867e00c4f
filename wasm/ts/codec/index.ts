/** Encodings for the contents of messages, in plain TypeScript: a bundler takes only those that are used. */

export * as aggregate from "./aggregate.js";
export { BitReader, BitWriter } from "./bits.js";
export type { BitOrder } from "./bits.js";
export * as bitstream from "./bitstream.js";
export { ByteReader, ByteWriter, splitId, withId } from "./cursor.js";
export { CodecError } from "./error.js";
export type { CodecErrorCode } from "./error.js";
export * as rabbit from "./rabbit.js";
