/** What a page can say of a message before its worker does: of `src/npm/texts/errors.txt`, with one text for both limits of a length. */

import { RakwireError } from "../errors.js";

const TEXTS = {
  "not-connected": "the connection is not open",
  "empty-message": "a message must have at least one byte",
  "reserved-id": "the first byte is below 0x1B and belongs to RakNet itself",
  "too-long": "the message is longer than the protocol allows or than one connection may hold; send it in pieces",
  "queue-full": "the connection holds as much as it may; try again later",
} as const;

export function refusal(code: keyof typeof TEXTS): RakwireError {
  return new RakwireError(code, TEXTS[code]);
}
