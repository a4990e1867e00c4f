/** Encodings for message contents in plain TypeScript. Bundlers include only the encodings that are used. */

export * as aggregate from "./aggregate.js";
export { BitReader, BitWriter, ByteReader, ByteWriter, CodecError, splitId, withId } from "./cursor.js";
export type { BitOrder, CodecErrorCode } from "./cursor.js";
export * as bitstream from "./bitstream.js";
export * as rabbit from "./rabbit.js";


