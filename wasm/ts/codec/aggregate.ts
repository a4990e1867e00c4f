/** Packs many small messages into one, in the format of `codec::aggregate` of the Rust crate without compression. */

import { ByteReader, ByteWriter, CodecError } from "./cursor.js";

const FIRST_ID = 0x86;
const LAST_ID = 0xff;
/** The compression byte, which follows the id: not compressed. */
const PLAIN = 0;
/** Message lengths in bytes must be below this number, because four groups of seven bits encode them. */
const LENGTH_END = 2 ** 28;
const MAX_GROUPS = 4;

/**
 * Packs messages into one aggregate. The receiver recognizes it by its id, 0x86 to 0xFF. No message may be empty or
 * start with that id.
 *
 * @throws CodecError with the code `out-of-range` or `too-many`.
 */
export function pack(id: number, messages: Iterable<Uint8Array>): Uint8Array<ArrayBuffer> {
  checkId(id);
  const writer = new ByteWriter().u8(id).u8(PLAIN);
  for (const message of messages) {
    checkMessage(id, message);
    if (message.length >= LENGTH_END) {
      throw new CodecError("too-many", `a message has at most ${LENGTH_END - 1} bytes, not ${message.length}`);
    }
    writeLength(writer, message.length);
    writer.bytes(message);
  }
  return writer.finish();
}

/**
 * Unpacks the messages of an aggregate without copying them.
 *
 * @throws CodecError with the code `out-of-range` if the id differs from `id` or the aggregate is compressed, or
 * `truncated`.
 */
export function unpack(id: number, aggregate: Uint8Array): Uint8Array[] {
  checkId(id);
  const reader = new ByteReader(aggregate);
  const [found, compression] = [reader.u8(), reader.u8()];
  if (found !== id || compression !== PLAIN) {
    throw new CodecError("out-of-range", `this is not a plain aggregate with the id ${id}: it begins with ${found}, ${compression}`);
  }
  const messages: Uint8Array[] = [];
  while (reader.remaining > 0) {
    const message = reader.bytes(readLength(reader));
    checkMessage(id, message);
    messages.push(message);
  }
  return messages;
}

function checkId(id: number): void {
  if (!Number.isInteger(id) || id < FIRST_ID || id > LAST_ID) {
    throw new CodecError("out-of-range", `the id of an aggregate is 0x86 to 0xFF, not ${id}`);
  }
}

/** Refuses empty messages and nested aggregates, so that no message is unpacked twice. */
function checkMessage(id: number, message: Uint8Array): void {
  if (message.length === 0 || message[0] === id) {
    throw new CodecError("out-of-range", "a message in an aggregate must not be empty or begin with the id of the aggregate");
  }
}

function writeLength(writer: ByteWriter, length: number): void {
  let rest = length;
  while (rest >= 0x80) {
    writer.u8((rest & 0x7f) | 0x80);
    rest >>= 7;
  }
  writer.u8(rest);
}

function readLength(reader: ByteReader): number {
  let length = 0;
  for (let place = 0; place < MAX_GROUPS; place++) {
    const group = reader.u8();
    length |= (group & 0x7f) << (7 * place);
    if (group < 0x80) {
      if (group === 0 && place > 0) {
        break;
      }
      return length;
    }
  }
  throw new CodecError("out-of-range", "a length is encoded in more bytes than it needs, or in more than four");
}
