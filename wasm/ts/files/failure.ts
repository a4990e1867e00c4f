/** How a transfer ends that does not get to its end. */

import { RakwireError } from "../errors.js";

/** Why a transfer failed; `other` is a reason unknown here. */
export type TransferReason =
  | "cancelled"
  | "forbidden"
  | "too-many-files"
  | "file-too-long"
  | "too-many-bytes"
  | "bad-path"
  | "bad-manifest"
  | "bad-digest"
  | "storage"
  | "unknown"
  | "too-many-requests"
  | "bad-message"
  | "too-long"
  | "timed-out"
  | "other";

/** Each reason as both peers are told, in the order of the codes. */
const REASONS: Readonly<Record<TransferReason, string>> = {
  cancelled: "the transfer was cancelled",
  forbidden: "the sender does not serve this peer",
  "too-many-files": "there are more files than the receiver takes",
  "file-too-long": "a file is longer than the receiver takes",
  "too-many-bytes": "the files have more bytes than the receiver takes",
  "bad-path": "a path is none that a file may have",
  "bad-manifest": "the manifest contradicts itself",
  "bad-digest": "the bytes of a file are not those of its SHA-256",
  storage: "a file cannot be read or written",
  unknown: "something was asked for that is not in the manifest",
  "too-many-requests": "more requests were under way than the sender allows",
  "bad-message": "a message is not what was asked for",
  "too-long": "a reply does not fit into the connection",
  "timed-out": "no answer came in time",
  other: "a reason unknown here",
};

const CODES = /* @__PURE__ */ Object.keys(REASONS) as TransferReason[];

export const codeOfReason = (reason: TransferReason): number => CODES.indexOf(reason);
export const reasonOfCode = (code: number): TransferReason => CODES[code] ?? "other";

/** A transfer has failed, here or at the other peer. */
export class TransferError extends RakwireError {
  readonly reason: TransferReason;
  /** Whether the other peer has ended it. */
  readonly isRemote: boolean;

  constructor(reason: TransferReason, isRemote = false, options?: ErrorOptions) {
    super("transfer-failed", REASONS[reason] + (isRemote ? ", says the other peer" : ""), options);
    this.reason = reason;
    this.isRemote = isRemote;
  }
}
