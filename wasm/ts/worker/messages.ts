/** What a page and its worker tell each other, how much of it may be on the way, and what the page can say before its worker does. */

import type { ErrorCode } from "../errors.js";
import { RakwireError } from "../errors.js";
import type { SessionSettings } from "../options.js";
import type { PeerStats } from "../rust.js";
import type { SessionEnd } from "../session.js";
import type { RelayNotice } from "../transport/flow.js";
import type { Message, Outcome, Progress, SendOptions, TransportName } from "../types.js";

/** A message to send; the number of its receipt if it asks for one. */
export interface Outgoing {
  bytes: Uint8Array;
  options: SendOptions;
  receipt?: number;
}

/** From the page, for the session with this number. */
export type ToWorker = { session: number } & (
  /**
   * `entry` numbers the WebAssembly of an entry of the package, as every copy of a module is another one. `timeOrigin` is that
   * of the page, whose clock the worker's is not.
   */
  | { type: "open"; entry: number; module: WebAssembly.Module; settings: SessionSettings; timeOrigin: number }
  | { type: "send"; messages: readonly Outgoing[] }
  /** The page has room for so many messages and bytes more. */
  | { type: "room"; messages: number; bytes: number }
  | { type: "disconnect" }
  /** The page is left, and with it this worker ends. */
  | { type: "leave" }
  | { type: "cancel" }
);

/** From the worker, of the session with this number. */
export type ToPage = { session: number } & (
  | {
      type: "open";
      longest: number;
      serverGuid: bigint | undefined;
      securePeer: Uint8Array | undefined;
      internalAddresses: string[];
      transport: TransportName | undefined;
    }
  | { type: "messages"; messages: readonly Message[] }
  /** The connection has taken so many messages of the page, with so many bytes. */
  | { type: "taken"; messages: number; bytes: number }
  | { type: "refused"; receipt: number | undefined; code: ErrorCode; reason: string }
  | { type: "outcome"; receipt: number; outcome: Outcome }
  | { type: "progress"; progress: Progress }
  | { type: "mtu"; mtu: number }
  | { type: "stats"; stats: PeerStats; bufferedAmount: number; transport: TransportName | undefined }
  | { type: "interrupted" }
  | { type: "resumed"; transport: TransportName | undefined }
  | { type: "relay-notice"; notice: RelayNotice }
  | { type: "end"; end: SessionEnd; stats: PeerStats }
);

/** Messages that the page has not room for yet, and their bytes. */
export const WINDOW = 256;
export const WINDOW_BYTES = 1024 * 1024;
/** Bytes of messages that the connection has not taken yet. */
export const MAX_UNTAKEN_BYTES = 1024 * 1024;

/** What a page can say of a message before its worker does: of `src/npm/texts/errors.txt`, with one text for both limits of a length. */
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
