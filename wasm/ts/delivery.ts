/** The numbers that Rust uses for deliveries, and their names. */

import { RakwireError } from "./errors.js";
import type { Priority, Protocol, Reliability, SendOptions } from "./types.js";

const RELIABILITIES: readonly Reliability[] = [
  "unreliable",
  "unreliable-sequenced",
  "reliable",
  "reliable-ordered",
  "reliable-sequenced",
];
/** From reliabilities to the ones with a receipt. */
const WITH_RECEIPT: ReadonlyMap<number, number> = new Map([
  [0, 5],
  [2, 6],
  [3, 7],
]);
const PRIORITIES: readonly Priority[] = ["immediate", "high", "medium", "low"];
const CHANNELS = 32;
const DEFAULTS: Readonly<Record<Protocol, Reliability>> = { raknet: "reliable-ordered", game: "reliable" };

/** A delivery as numbers. */
export interface Delivery {
  reliability: number;
  channel: number;
  priority: number;
}

function numberOf<T extends string>(what: string, names: readonly T[], name: T): number {
  const number = names.indexOf(name);
  if (number < 0) {
    throw new RakwireError("bad-option", `${what} must be one of ${names.join(", ")}, not ${String(name)}`);
  }
  return number;
}

/** Checks the options of a message. */
export function readDelivery(options: SendOptions, protocol: Protocol = "raknet"): Delivery {
  const reliability = options.reliability ?? DEFAULTS[protocol];
  if (protocol === "game" && reliability !== "reliable" && reliability !== "unreliable") {
    const message = `reliability must be reliable or unreliable in the Game Protocol, not ${String(reliability)}`;
    throw new RakwireError("bad-option", message);
  }
  const channel = options.channel ?? 0;
  if (!Number.isInteger(channel) || channel < 0 || channel >= CHANNELS) {
    throw new RakwireError("bad-option", `channel must be 0 to ${CHANNELS - 1}, not ${String(channel)}`);
  }
  return {
    reliability: numberOf("reliability", RELIABILITIES, reliability),
    channel,
    priority: numberOf("priority", PRIORITIES, options.priority ?? "medium"),
  };
}

/** The same delivery with a receipt. */
export function withReceipt(delivery: Delivery, protocol: Protocol = "raknet"): Delivery {
  if (protocol === "game") {
    throw new RakwireError("bad-option", "the Game Protocol has no receipts; use send");
  }
  const reliability = WITH_RECEIPT.get(delivery.reliability);
  if (reliability === undefined) {
    throw new RakwireError("bad-option", "sequenced messages have no receipts; choose another reliability");
  }
  return { ...delivery, reliability };
}

/** The name of a reliability; those with a receipt have the name of those without. */
export function reliabilityName(number: number): Reliability {
  return RELIABILITIES[number] ?? "reliable";
}
