/** The wire format of file transfer (docs/plugins/files.md), and the errors of failed transfers. */

import { ByteReader, ByteWriter } from "../codec/cursor.js";
import { RakwireError } from "../errors.js";

/** The first byte of every message to a sender. */
export const REQUEST_ID = 128;
/** The first byte of every message to a receiver. */
export const REPLY_ID = 129;
export const DIGEST_LENGTH = 32;
/** The number of leading SHA-256 bytes that identify an older version of a file. */
const BASE_LENGTH = 16;
/** The length of the header of a data message in bytes. */
export const DATA_HEADER = 6;

const LIST = 0;
const READ = 1;
const DONE = 2;
const FIND_PATCH = 4;
const PAGE = 0;
const DATA = 1;
const PATCH = 2;
const FAILED = 3;

/** A message from a receiver to a sender. */
export type Request =
  | { readonly kind: "list"; readonly number: number; readonly first: number; readonly count: number }
  | { readonly kind: "read"; readonly number: number; readonly file: number; readonly offset: number; readonly length: number }
  | { readonly kind: "find patch"; readonly number: number; readonly file: number; readonly base: Uint8Array }
  | { readonly kind: "done" }
  | { readonly kind: "failed"; readonly code: number };

/** A file in the manifest. */
export interface Entry {
  readonly path: Uint8Array;
  readonly size: number;
  readonly digest: Uint8Array;
}

/** A page of the manifest. */
export interface Page {
  readonly kind: "page";
  readonly number: number;
  readonly files: number;
  readonly bytes: number;
  readonly chunk: number;
  readonly window: number;
  readonly first: number;
  readonly entries: readonly Entry[];
}

/** A message from a sender to a receiver. */
export type Reply =
  | Page
  | { readonly kind: "data"; readonly number: number; readonly bytes: Uint8Array }
  | { readonly kind: "patch"; readonly number: number; readonly patch: number; readonly size: number }
  | { readonly kind: "failed"; readonly code: number };

export function encodeRequest(request: Request): Uint8Array<ArrayBuffer> {
  const writer = new ByteWriter("big").u8(REQUEST_ID);
  switch (request.kind) {
    case "list":
      return writer.u8(LIST).u32(request.number).u32(request.first).u16(request.count).finish();
    case "read":
      writer.u8(READ).u32(request.number).u32(request.file).u64(BigInt(request.offset));
      return writer.u32(request.length).finish();
    case "find patch":
      return writer.u8(FIND_PATCH).u32(request.number).u32(request.file).bytes(request.base).finish();
    case "done":
      return writer.u8(DONE).finish();
    case "failed":
      return writer.u8(FAILED).u8(request.code).finish();
  }
}

/** Decodes a request; `undefined` if the bytes are invalid. */
export function decodeRequest(bytes: Uint8Array): Request | undefined {
  return decoded(bytes, REQUEST_ID, (kind, reader) => {
    switch (kind) {
      case LIST:
        return { kind: "list", number: reader.u32(), first: reader.u32(), count: reader.u16() };
      case READ:
        return { kind: "read", number: reader.u32(), file: reader.u32(), offset: Number(reader.u64()), length: reader.u32() };
      case FIND_PATCH:
        return { kind: "find patch", number: reader.u32(), file: reader.u32(), base: reader.bytes(BASE_LENGTH) };
      case DONE:
        return { kind: "done" };
      case FAILED:
        return { kind: "failed", code: reader.u8() };
      default:
        return undefined;
    }
  });
}

export function encodeReply(reply: Reply): Uint8Array<ArrayBuffer> {
  const writer = new ByteWriter("big").u8(REPLY_ID);
  switch (reply.kind) {
    case "page":
      writer.u8(PAGE).u32(reply.number).u32(reply.files).u64(BigInt(reply.bytes)).u32(reply.chunk).u16(reply.window).u32(reply.first);
      reply.entries.forEach(({ path, size, digest }) => writer.u8(path.length).bytes(path).u64(BigInt(size)).bytes(digest));
      return writer.finish();
    case "data":
      return writer.u8(DATA).u32(reply.number).bytes(reply.bytes).finish();
    case "patch":
      return writer.u8(PATCH).u32(reply.number).u32(reply.patch).u64(BigInt(reply.size)).finish();
    case "failed":
      return writer.u8(FAILED).u8(reply.code).finish();
  }
}

/** Decodes a reply; `undefined` if the bytes are invalid. Numbers above 2^53 are rounded. */
export function decodeReply(bytes: Uint8Array): Reply | undefined {
  return decoded(bytes, REPLY_ID, (kind, reader) => {
    switch (kind) {
      case PAGE:
        return readPage(reader);
      case DATA:
        return { kind: "data", number: reader.u32(), bytes: reader.bytes(reader.remaining) };
      case PATCH:
        return { kind: "patch", number: reader.u32(), patch: reader.u32(), size: Number(reader.u64()) };
      case FAILED:
        return { kind: "failed", code: reader.u8() };
      default:
        return undefined;
    }
  });
}

function readPage(reader: ByteReader): Page {
  const [number, files, bytes] = [reader.u32(), reader.u32(), Number(reader.u64())];
  const [chunk, window, first] = [reader.u32(), reader.u16(), reader.u32()];
  const entries: Entry[] = [];
  while (reader.remaining > 0) {
    const path = reader.bytes(reader.u8());
    entries.push({ path, size: Number(reader.u64()), digest: reader.bytes(DIGEST_LENGTH) });
  }
  return { kind: "page", number, files, bytes, chunk, window, first, entries };
}

function decoded<T>(bytes: Uint8Array, id: number, read: (kind: number, reader: ByteReader) => T | undefined): T | undefined {
  const reader = new ByteReader(bytes, "big");
  try {
    const message = reader.u8() === id ? read(reader.u8(), reader) : undefined;
    return reader.remaining === 0 ? message : undefined;
  } catch {
    return undefined;
  }
}

/** The reason of a failed transfer; `other` if the peer sent a reason that this version does not define. */
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

/** The description of each reason, in the order of the codes. */
const REASONS: Readonly<Record<TransferReason, string>> = {
  cancelled: "the transfer was cancelled",
  forbidden: "the sender does not offer files to this peer",
  "too-many-files": "there are more files than the maxFiles of the receiver",
  "file-too-long": "a file is longer than the maxFileBytes of the receiver",
  "too-many-bytes": "the files have more bytes than the maxBytes of the receiver",
  "bad-path": "a path in the manifest is not allowed",
  "bad-manifest": "the manifest contradicts itself",
  "bad-digest": "the bytes of a file do not match its SHA-256",
  storage: "a file cannot be read or written",
  unknown: "a requested item is not in the manifest",
  "too-many-requests": "there were more open requests than the sender allows",
  "bad-message": "a message is malformed or does not match the request",
  "too-long": "a reply exceeds the maximum message length",
  "timed-out": "the transfer made no progress within timeoutMs",
  other: "a reason that this version does not know",
};

const CODES = /* @__PURE__ */ Object.keys(REASONS) as TransferReason[];

export const codeOfReason = (reason: TransferReason): number => CODES.indexOf(reason);
export const reasonOfCode = (code: number): TransferReason => CODES[code] ?? "other";

/** The error of a transfer that failed locally or at the peer. */
export class TransferError extends RakwireError {
  readonly reason: TransferReason;
  /** True if the peer aborted the transfer. */
  readonly isRemote: boolean;

  constructor(reason: TransferReason, isRemote = false, options?: ErrorOptions) {
    super("transfer-failed", REASONS[reason] + (isRemote ? " (reported by the peer)" : ""), options);
    this.reason = reason;
    this.isRemote = isRemote;
  }
}
