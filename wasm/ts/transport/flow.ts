/**
 * A flow of the relay: its control messages (docs/relay-protocol.md), its timeouts, and the replacement of lost
 * carriers.
 */

import type { RelayDrops } from "../types.js";
import type { CarrierName } from "./carrier.js";

/** The states of a transport to a relay. */
export const RACING = 0;
export const ATTACHED = 1;
export const MIGRATING = 2;
export const LOST_CARRIER = 3;
export const ENDED = 4;
/** The relay's close code for a missing or invalid token. */
export const TOKEN_REFUSED = 4401;
/** The close code of a carrier after another carrier has taken over its flow. */
export const TAKEN_OVER = 4409;
/** The first interval in milliseconds for repeating a flow request. It doubles with each request. */
export const FIRST_REQUEST_MS = 250;
/** The maximum number of flow requests per carrier. */
export const REQUESTS = 4;
/** The number of flow requests before another carrier is tried. It leaves time for the handshake of the protocol. */
export const FIRST_REQUESTS = 3;
/** The interval in milliseconds at which carriers are checked for silence. */
export const WATCH_MS = 500;
/** The time in milliseconds without an answer after which a carrier counts as unresponsive. */
export const SILENT_MS = 3_000;
/**
 * The number of bytes that an operating system may buffer without sending them. A send queue that shrinks to fewer
 * bytes does not prove that the carrier works.
 */
export const FEW_BYTES = 4_000;
/**
 * A check that runs this many milliseconds late indicates a blocked or suspended page, in which received datagrams may
 * be queued.
 */
export const LATE_MS = 250;
/** The time limit for opening a better carrier in milliseconds. */
export const UPGRADE_MS = 30_000;
/** The first interval in milliseconds for retrying a better carrier. It doubles up to the maximum. */
export const FIRST_UPGRADE_MS = 10_000;
export const LONGEST_UPGRADE_MS = 300_000;
/** The carrier that loses no datagrams and does not limit their length. */
export const STREAM: CarrierName = "websocket";

/** The id of RakNet's first connection request. The server derives the MTU from its length. */
export const REQUEST_1 = 0x05;
/** The minimum length of that request in bytes: id, magic and protocol version. */
export const MIN_REQUEST_1 = 18;
/** The longest text accepted from the relay, in characters. */
const MAX_TEXT = 4_096;
/** The longest time in milliseconds for which a relay may keep a flow. */
const MAX_WITHIN_MS = 600_000;
/** The maximum number of drop reasons per direction; a relay has fewer. */
const MAX_REASONS = 16;
/**
 * The pause in milliseconds before the second attempt to continue a flow. The first attempt is immediate. The pause
 * doubles up to the maximum.
 */
const SECOND_DELAY_MS = 100;
const LONGEST_DELAY_MS = 2_000;
/**
 * If a carrier is lost within this time in milliseconds, its replacement is delayed. Otherwise an unstable path would
 * be retried continuously.
 */
const LASTING_MS = 1_000;
/**
 * The time limit in milliseconds of the first attempt to replace a lost carrier. It doubles up to the maximum, because
 * the path may be slow.
 */
const FIRST_ATTEMPT_MS = 3_000;
const LONGEST_ATTEMPT_MS = 12_000;

/** A notice of the relay: the datagrams that it has dropped, or the time until it shuts down. */
export type RelayNotice = { drops: RelayDrops; leftMs?: never } | { drops?: never; leftMs: number };

/** A flow on the relay. Its secret lets a new transport resume it. */
export interface Flow {
  secret: string;
  /** The time in milliseconds for which the relay keeps the flow after the loss of its carrier. */
  withinMs: number;
}

/** Parses a control message; returns an empty object if it is not a JSON object. */
export function readText(text: string): object {
  try {
    const value: unknown = text.length > MAX_TEXT ? undefined : JSON.parse(text);
    return typeof value === "object" && value !== null ? value : {};
  } catch {
    return {};
  }
}

/** Reads the flow of a message. `resumed` is true if the relay recognised the secret in the URL. */
export function readFlow(value: object): (Flow & { resumed: boolean }) | undefined {
  const { type, resume, resume_within_ms: withinMs, resumed } = value as Record<string, unknown>;
  return type === "flow" && typeof resume === "string" && typeof withinMs === "number"
    ? { secret: resume, withinMs: Math.min(withinMs, MAX_WITHIN_MS), resumed: resumed === true }
    : undefined;
}

/** Reads the notice of a message. Members that are not counts are ignored. */
export function readNotice(value: object): RelayNotice | undefined {
  const { type, to_client: toClient, to_server: toServer, left_ms: leftMs } = value as Record<string, unknown>;
  if (type === "drops") {
    return { drops: { toClient: readCounts(toClient), toServer: readCounts(toServer) } };
  }
  return type === "draining" && isCount(leftMs, 0) ? { leftMs } : undefined;
}

function isCount(value: unknown, least = 1): value is number {
  return Number.isSafeInteger(value) && (value as number) >= least;
}

function readCounts(value: unknown): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const [name, count] of Object.entries(value ?? {}).slice(0, MAX_REASONS)) {
    if (/^[a-z][a-z_]{1,30}$/.test(name) && isCount(count)) {
      counts[name.replace(/_./g, (pair) => pair.slice(1).toUpperCase())] = count;
    }
  }
  return counts;
}

/** The period from the loss of a carrier until another carrier continues the flow, or until the deadline for that. */
export class Interruption {
  readonly #endsAt: number;
  #delayMs: number;
  #attemptMs = FIRST_ATTEMPT_MS;

  /** The relay keeps the flow for `withinMs` from `now`. The lost carrier was in use for `heldMs`. */
  constructor(now: number, withinMs: number, heldMs: number) {
    this.#endsAt = now + withinMs;
    this.#delayMs = heldMs >= LASTING_MS ? 0 : SECOND_DELAY_MS;
  }

  /** Returns the pause in milliseconds before the next attempt; `undefined` if it would exceed the deadline. */
  nextDelay(now: number): number | undefined {
    // Random, so that pages that lost the same relay do not reconnect simultaneously.
    const delay = this.#delayMs * (0.5 + Math.random());
    this.#delayMs = Math.min(Math.max(2 * this.#delayMs, SECOND_DELAY_MS), LONGEST_DELAY_MS);
    return now + delay > this.#endsAt ? undefined : delay;
  }

  /** Returns the time limit of the next attempt in milliseconds. */
  nextAttemptMs(): number {
    const attemptMs = this.#attemptMs;
    this.#attemptMs = Math.min(2 * attemptMs, LONGEST_ATTEMPT_MS);
    return attemptMs;
  }
}
