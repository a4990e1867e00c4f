/** What a relay says that it dropped, in `docs/relay-protocol.md`. */

import type { RelayDrops } from "../types.js";

/** More reasons than a relay has in one direction. */
const MOST_REASONS = 16;

/** The counts that a control message tells; what is no count is left out. */
export function readDrops(said: object): RelayDrops | undefined {
  const { type, to_client: toClient, to_server: toServer } = said as Record<string, unknown>;
  return type === "drops" ? { toClient: readCounts(toClient), toServer: readCounts(toServer) } : undefined;
}

function readCounts(said: unknown): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const [name, count] of Object.entries(said ?? {}).slice(0, MOST_REASONS)) {
    if (/^[a-z][a-z_]{1,30}$/.test(name) && Number.isSafeInteger(count) && count > 0) {
      counts[name.replace(/_./g, (pair) => pair.slice(1).toUpperCase())] = count;
    }
  }
  return counts;
}
