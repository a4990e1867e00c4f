/** The bytes of ready events (docs/plugins/ready.md). */

/** Whether a peer is ready: not, itself, with all that it waits for, or because somebody has forced it. */
export type ReadyStatus = "unset" | "set" | "all-set" | "force-all-set";
/** A status, or the question for it. */
export type ReadyMessage = ReadyStatus | "query";

const IDS: Readonly<Record<ReadyMessage, number>> = { set: 68, unset: 69, "all-set": 70, query: 71, "force-all-set": 76 };
const MESSAGES = /* @__PURE__ */ Object.keys(IDS) as ReadyMessage[];
/** The first bytes of all messages. */
export const READY_IDS: readonly number[] = /* @__PURE__ */ Object.values(IDS);
const LENGTH = 5;

export function encodeReady(message: ReadyMessage, event: number): Uint8Array<ArrayBuffer> {
  const bytes = new DataView(new ArrayBuffer(LENGTH));
  bytes.setUint8(0, IDS[message]);
  bytes.setInt32(1, event);
  return new Uint8Array(bytes.buffer);
}

/** What the bytes say; what is behind them is ignored. */
export function decodeReady(bytes: Uint8Array): { readonly message: ReadyMessage; readonly event: number } | undefined {
  const message = MESSAGES.find((name) => IDS[name] === bytes[0]);
  if (message === undefined || bytes.length < LENGTH) {
    return undefined;
  }
  return { message, event: new DataView(bytes.buffer, bytes.byteOffset).getInt32(1) };
}
