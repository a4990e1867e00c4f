/** The messages between a page and its worker, their flow control, and the errors that the page detects itself. */

import type { ErrorCode } from "../errors.js";
import { RakwireError } from "../errors.js";
import type { SessionSettings } from "../options.js";
import type { PeerStats } from "../rust.js";
import type { SessionEnd } from "../session.js";
import type { RelayNotice } from "../transport/flow.js";
import type { Message, Outcome, Progress, SendOptions, TransportName } from "../types.js";

/** A message to send, with its receipt number if it has one. */
export interface Outgoing {
  bytes: Uint8Array;
  options: SendOptions;
  receipt?: number;
}

/** A message from the page about the session with this number. */
export type ToWorker = { session: number } & (
  /**
   * `entry` identifies the WebAssembly of an entry of the package, because each copy of a module is a different object.
   * `timeOrigin` is the page's, because the worker's clock differs.
   */
  | { type: "open"; entry: number; module: WebAssembly.Module; settings: SessionSettings; timeOrigin: number }
  | { type: "send"; messages: readonly Outgoing[] }
  /** The page grants credit for this many more messages and bytes. */
  | { type: "room"; messages: number; bytes: number }
  | { type: "disconnect" }
  /** The page is being left, and the worker ends with it. */
  | { type: "leave" }
  | { type: "cancel" }
);

/** A message from the worker about the session with this number. */
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
  /** The connection has accepted this many messages and bytes from the page. */
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

/** The maximum number of messages that the worker may post to the page without new credit. */
export const WINDOW = 256;
/** The maximum number of message bytes that the worker may post to the page without new credit. */
export const WINDOW_BYTES = 1024 * 1024;
/** The maximum number of message bytes posted to the worker that the connection has not accepted yet. */
export const MAX_UNACCEPTED_BYTES = 1024 * 1024;

/**
 * The errors that the page detects before the worker does, from `src/npm/texts/errors.txt`. One text covers both length
 * limits.
 */
const TEXTS = {
  "not-connected": "the connection is not open",
  "empty-message": "a message must have at least one byte",
  "reserved-id": "the first byte is below 0x1B, which RakNet reserves",
  "too-long": "the message is longer than the protocol allows or than one connection may hold; send it in pieces",
  "queue-full": "the send queue of the connection is full; try again later",
} as const;

export function refusal(code: keyof typeof TEXTS): RakwireError {
  return new RakwireError(code, TEXTS[code]);
}
