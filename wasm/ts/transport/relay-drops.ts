/** What a relay says that it dropped, and that it is about to end, in `docs/relay-protocol.md`. */

import type { RelayNotice } from "./transport.js";

/** More reasons than a relay has in one direction. */
const MOST_REASONS = 16;

/** The notice of a control message; what is no count is left out. */
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
