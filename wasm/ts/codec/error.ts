/** Why bytes could not be read or a value not be written. */

/** What is wrong with bytes, or with a value. */
export type CodecErrorCode =
  /** The bytes end before the value. */
  | "truncated"
  /** A value is outside of what its encoding can say. */
  | "out-of-range"
  /** There are more elements or bytes than allowed. */
  | "too-many"
  /** A text is not UTF-8. */
  | "bad-utf8"
  /** Sequences lie within sequences more than 16 deep. */
  | "too-deep";

/** An error of a codec. Bytes that come from a network may always cause one. */
export class CodecError extends Error {
  override readonly name = "CodecError";
  readonly code: CodecErrorCode;

  constructor(code: CodecErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}
