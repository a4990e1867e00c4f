/** File transfer: the files of the other peer, as streams, and files for the other peer. */

export { RakwireError } from "./errors.js";
export type { ErrorCode, RakwireErrorOptions } from "./errors.js";
export { TransferError } from "./files/failure.js";
export type { TransferReason } from "./files/failure.js";
export type { PresentBytes } from "./files/incoming-file.js";
export { sendFiles } from "./files/send.js";
export type { SendFilesOptions, SentFile } from "./files/send.js";
export { receiveFiles } from "./files/transfer.js";
export type { FileEntry, FileProgress, FileTransfer, ReceivedFile, ReceiveOptions } from "./files/transfer.js";
