/**
 * A flow of the relay: its messages (docs/relay-protocol.md), its timeouts, and how long a lost carrier is replaced.
 */

import type { RelayDrops } from "../types.js";
import type { CarrierName } from "./carrier.js";

/** The states of a transport to a relay. */
export const RACING = 0;
export const ATTACHED = 1;
export const MIGRATING = 2;
export const LOST_CARRIER = 3;
export const ENDED = 4;
/** The code of a relay that requires a token, or another one. */
export const TOKEN_REFUSED = 4401;
/** The code of a carrier after another one has taken its flow over. */
export const TAKEN_OVER = 4409;
/** The time before a flow is requested again, in milliseconds; it doubles. */
export const FIRST_REQUEST_MS = 250;
export const REQUESTS = 4;
/** The number of requests before another carrier is tried. This leaves time for the handshake of the protocol. */
export const FIRST_REQUESTS = 3;
/** The interval at which a carrier is checked for silence, and the longest silence, in milliseconds. */
export const WATCH_MS = 500;
export const SILENT_MS = 3_000;
/** Systems buffer this many bytes even if nothing is sent, so a shorter queue is no sign of life. */
export const FEW_BYTES = 4_000;
/** A check this late, in milliseconds, means that the page was blocked or suspended and datagrams may be queued. */
export const LATE_MS = 250;
/** The longest time for a better carrier to open, in milliseconds. */
export const UPGRADE_MS = 30_000;
/** The time before a better carrier is tried again, in milliseconds; it doubles up to the maximum. */
export const FIRST_UPGRADE_MS = 10_000;
export const LONGEST_UPGRADE_MS = 300_000;
/** The carrier without losses and without a limit of the datagram length. */
export const STREAM: CarrierName = "websocket";

/** The id of RakNet's first request. Its length proposes an MTU to the server. */
export const REQUEST_1 = 0x05;
/** The length of the id, the magic and the protocol version. */
export const REQUEST_1_LEAST = 18;
/** Limits on values of the relay: the longest text, and the longest time for which it is sought again. */
const MAX_TEXT = 4_096;
const MAX_WITHIN_MS = 600_000;
/** More drop reasons than a relay has per direction. */
const MOST_REASONS = 16;
/** Milliseconds before the second attempt to continue a flow; the first is immediate. Doubles up to the maximum. */
const SECOND_DELAY_MS = 100;
const LONGEST_DELAY_MS = 2_000;
/**
 * A carrier that is lost sooner, in milliseconds, is replaced with a delay, because an unstable path would otherwise be
 * retried continuously.
 */
const LASTING_MS = 1_000;
/**
 * The time limit of the first attempt if the carrier was unresponsive, in milliseconds. Doubles up to the maximum,
 * because the path may be slow.
 */
const FIRST_ATTEMPT_MS = 3_000;
const LONGEST_ATTEMPT_MS = 12_000;

/** A notice of the relay: the datagrams it has dropped, or the time until it shuts down. */
export type RelayNotice = { drops: RelayDrops; leftMs?: never } | { drops?: never; leftMs: number };

/** A flow of the relay, which another carrier can continue. */
export interface Flow {
  secret: string;
  /** Milliseconds for that after the loss of the carrier. */
  withinMs: number;
}

/** Parses the object in a control message; empty if there is none. */
export function readText(text: string): object {
  try {
    const value: unknown = text.length > MAX_TEXT ? undefined : JSON.parse(text);
    return typeof value === "object" && value !== null ? value : {};
  } catch {
    return {};
  }
}

/** Reads the flow of a message; `resumed` if the secret in the URL belongs to it. */
export function readFlow(value: object): (Flow & { resumed: boolean }) | undefined {
  const { type, resume, resume_within_ms: withinMs, resumed } = value as Record<string, unknown>;
  return type === "flow" && typeof resume === "string" && typeof withinMs === "number"
    ? { secret: resume, withinMs: Math.min(withinMs, MAX_WITHIN_MS), resumed: resumed === true }
    : undefined;
}

/** Reads the notice of a message, ignoring members that are not counts. */
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
  for (const [name, count] of Object.entries(value ?? {}).slice(0, MOST_REASONS)) {
    if (/^[a-z][a-z_]{1,30}$/.test(name) && isCount(count)) {
      counts[name.replace(/_./g, (pair) => pair.slice(1).toUpperCase())] = count;
    }
  }
  return counts;
}

/** The time between the loss of a carrier and the takeover by another one, or the deadline for it. */
export class Interruption {
  readonly #endsAt: number;
  #delayMs: number;
  #attemptMs = FIRST_ATTEMPT_MS;

  /** The flow is kept for `withinMs` from `now` on. Its previous carrier lasted for `heldMs`. */
  constructor(now: number, withinMs: number, heldMs: number) {
    this.#endsAt = now + withinMs;
    this.#delayMs = heldMs >= LASTING_MS ? 0 : SECOND_DELAY_MS;
  }

  /** Returns the pause before the next attempt; `undefined` if the flow is not kept that long. */
  nextDelay(now: number): number | undefined {
    // Pages that lost the same relay must not return at the same moment.
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
