/** The number that Rust uses for a delivery: the reliability in three bits, the priority in two, and the channel. */

import { RakwireError } from "./errors.js";
import type { Priority, Protocol, Reliability, SendOptions } from "./types.js";

const RELIABILITIES: readonly Reliability[] = [
  "unreliable",
  "unreliable-sequenced",
  "reliable",
  "reliable-ordered",
  "reliable-sequenced",
];
/** The reliability with a receipt for each of them, or 0 where there is none. */
const WITH_RECEIPT = [5, 0, 6, 7, 0];
const PRIORITIES: readonly Priority[] = ["immediate", "high", "medium", "low"];
const CHANNELS = 32;
const DEFAULTS: Readonly<Record<Protocol, Reliability>> = { raknet: "reliable-ordered", game: "reliable" };

function numberOf<T extends string>(what: string, names: readonly T[], name: T): number {
  const number = names.indexOf(name);
  if (number < 0) {
    throw new RakwireError("bad-option", `${what} must be one of ${names.join(", ")}, not ${String(name)}`);
  }
  return number;
}

/** Checks the options of a message, and returns the number of its delivery. */
export function readDelivery(options: SendOptions, protocol: Protocol = "raknet"): number {
  const reliability = options.reliability ?? DEFAULTS[protocol];
  if (protocol === "game" && reliability !== "reliable" && reliability !== "unreliable") {
    const message = `reliability must be reliable or unreliable in the Game Protocol, not ${String(reliability)}`;
    throw new RakwireError("bad-option", message);
  }
  const channel = options.channel ?? 0;
  if (!Number.isInteger(channel) || channel < 0 || channel >= CHANNELS) {
    throw new RakwireError("bad-option", `channel must be 0 to ${CHANNELS - 1}, not ${String(channel)}`);
  }
  const priority = numberOf("priority", PRIORITIES, options.priority ?? "medium");
  return numberOf("reliability", RELIABILITIES, reliability) | (priority << 3) | (channel << 5);
}

/** The same delivery with a receipt. */
export function withReceipt(delivery: number, protocol: Protocol = "raknet"): number {
  if (protocol === "game") {
    throw new RakwireError("bad-option", "the Game Protocol has no receipts; use send");
  }
  const reliability = WITH_RECEIPT[delivery & 7] ?? 0;
  if (reliability === 0) {
    throw new RakwireError("bad-option", "sequenced messages have no receipts; choose another reliability");
  }
  return (delivery & ~7) | reliability;
}

/** The name of a reliability; those with a receipt have the name of those without. */
export function reliabilityName(number: number): Reliability {
  return RELIABILITIES[number] ?? "reliable";
}
