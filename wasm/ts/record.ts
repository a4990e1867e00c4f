/** The records in which the WebAssembly leaves bytes. */

/** The bytes of the four numbers before other bytes. */
export const HEADER = 16;

/** Takes the bytes of a record; at 0, which stands for no memory, there are none. */
export function recordAt(memory: WebAssembly.Memory, at: number): Uint8Array<ArrayBuffer> {
  const length = at && new DataView(memory.buffer).getUint32(at + 12, true);
  return new Uint8Array(memory.buffer as ArrayBuffer).slice(at + HEADER, at + HEADER + length);
}
