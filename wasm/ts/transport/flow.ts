/**
 * A flow of the relay: the messages about it (docs/relay-protocol.md), the times that a client keeps for it, and how long another
 * carrier is sought when its carrier is lost.
 */

import type { RelayDrops } from "../types.js";
import type { CarrierName } from "./carrier.js";

/** The states of a transport to a relay. */
export const RACING = 0;
export const ATTACHED = 1;
export const MIGRATING = 2;
export const LOST_CARRIER = 3;
export const ENDED = 4;
/** The code of a relay that wants another token, or one at all. */
export const TOKEN_REFUSED = 4401;
/** The code of a connection after another one has taken its flow over. */
export const TAKEN_OVER = 4409;
/** The time before a flow is requested again; it doubles. */
export const FIRST_REQUEST_MS = 250;
export const REQUESTS = 4;
/** Another carrier is tried after this many requests, which leaves time for the handshake of the protocol. */
export const FIRST_REQUESTS = 3;
/** The interval at which a carrier is checked for silence, and the longest silence. */
export const WATCH_MS = 500;
export const SILENT_MS = 3_000;
/** Systems accept this many bytes even where nothing leaves, so that a shorter queue is no sign of life. */
export const FEW_BYTES = 4_000;
/** A check this late means that the page was blocked or suspended, and that datagrams may be queued. */
export const LATE_MS = 250;
/** The longest time for a better carrier to open. */
export const UPGRADE_MS = 30_000;
/** The time before a better carrier is tried again; it doubles until the longest. */
export const FIRST_UPGRADE_MS = 10_000;
export const LONGEST_UPGRADE_MS = 300_000;
/** The carrier that loses nothing and accepts datagrams of every length. */
export const STREAM: CarrierName = "websocket";

/** The id of RakNet's first request, whose length tells the server which MTU the client proposes. */
export const REQUEST_1 = 0x05;
/** The id and the magic, and the version of the protocol. */
export const REQUEST_1_LEAST = 18;
/** The longest text that is read, and the longest time for which a relay is sought again, whatever the relay says. */
const MAX_TEXT = 4_096;
const MAX_WITHIN_MS = 600_000;
/** More reasons than a relay has in one direction. */
const MOST_REASONS = 16;
/** The time before the second attempt to continue a flow, the first being made at once; it doubles until the longest. */
const SECOND_DELAY_MS = 100;
const LONGEST_DELAY_MS = 2_000;
/** A carrier that is lost sooner is replaced with a delay, or a path that never holds would be tried incessantly. */
const LASTING_MS = 1_000;
/**
 * The longest time for the first attempt, that of a silent carrier; it doubles until the longest, as a path may be slow.
 */
const FIRST_ATTEMPT_MS = 3_000;
const LONGEST_ATTEMPT_MS = 12_000;

/** A notice of the relay: the datagrams that it has dropped, or the time until it ends. */
export type RelayNotice = { drops: RelayDrops; leftMs?: never } | { drops?: never; leftMs: number };

/** A flow of the relay, which another carrier can continue. */
export interface Flow {
  secret: string;
  /** The time for that after its carrier was lost. */
  withinMs: number;
}

/** The object in a control message; an empty one if there is none. */
export function readText(text: string): object {
  try {
    const said: unknown = text.length > MAX_TEXT ? undefined : JSON.parse(text);
    return typeof said === "object" && said !== null ? said : {};
  } catch {
    return {};
  }
}

/** The flow that the relay names; `resumed` if it is the one of the secret in the URL. */
export function readFlow(said: object): (Flow & { resumed: boolean }) | undefined {
  const { type, resume, resume_within_ms: withinMs, resumed } = said as Record<string, unknown>;
  return type === "flow" && typeof resume === "string" && typeof withinMs === "number"
    ? { secret: resume, withinMs: Math.min(withinMs, MAX_WITHIN_MS), resumed: resumed === true }
    : undefined;
}

/** The notice of a control message, without members that are not counts. */
export function readNotice(said: object): RelayNotice | undefined {
  const { type, to_client: toClient, to_server: toServer, left_ms: leftMs } = said as Record<string, unknown>;
  if (type === "drops") {
    return { drops: { toClient: readCounts(toClient), toServer: readCounts(toServer) } };
  }
  return type === "draining" && isCount(leftMs, 0) ? { leftMs } : undefined;
}

function isCount(said: unknown, least = 1): said is number {
  return Number.isSafeInteger(said) && (said as number) >= least;
}

function readCounts(said: unknown): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const [name, count] of Object.entries(said ?? {}).slice(0, MOST_REASONS)) {
    if (/^[a-z][a-z_]{1,30}$/.test(name) && isCount(count)) {
      counts[name.replace(/_./g, (pair) => pair.slice(1).toUpperCase())] = count;
    }
  }
  return counts;
}

/** The time from the loss of a carrier until another one has the flow, or there is no more time for that. */
export class Interruption {
  readonly #endsAt: number;
  #delayMs: number;
  #attemptMs = FIRST_ATTEMPT_MS;

  /** The flow waits for `withinMs` from `now` on, and had its carrier for `heldMs`. */
  constructor(now: number, withinMs: number, heldMs: number) {
    this.#endsAt = now + withinMs;
    this.#delayMs = heldMs >= LASTING_MS ? 0 : SECOND_DELAY_MS;
  }

  /** The pause before the next attempt; `undefined` if the flow does not wait so long. */
  nextDelay(now: number): number | undefined {
    // Many pages that lost the same relay shall not come back at the same moment.
    const delay = this.#delayMs * (0.5 + Math.random());
    this.#delayMs = Math.min(Math.max(2 * this.#delayMs, SECOND_DELAY_MS), LONGEST_DELAY_MS);
    return now + delay > this.#endsAt ? undefined : delay;
  }

  /** The longest time for the next attempt to open a carrier. */
  nextAttemptMs(): number {
    const attemptMs = this.#attemptMs;
    this.#attemptMs = Math.min(2 * attemptMs, LONGEST_ATTEMPT_MS);
    return attemptMs;
  }
}
