/** The options that both sides of a transfer have. */

import { checkNames, SEND_OPTIONS, WAIT_OPTIONS } from "../options.js";
import type { SendOptions } from "../types.js";

/** Refuses options that neither both sides nor this one have. */
export function checkTransfer(options: { delivery?: SendOptions }, ...own: string[]): void {
  checkNames(options, [...WAIT_OPTIONS, "timeoutMs", "window", "chunkBytes", "maxBytesPerSecond", "onProgress", "delivery", ...own]);
  checkNames(options.delivery, SEND_OPTIONS);
}
