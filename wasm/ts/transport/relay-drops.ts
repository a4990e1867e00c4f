/** What a relay says that it dropped, in `docs/relay-protocol.md`. */

import type { RelayDropCounts, RelayDropReason, RelayDrops } from "../types.js";

/** The reasons as a relay names them. */
const REASONS: Readonly<Record<string, RelayDropReason>> = {
  queue_full: "queueFull",
  too_old: "tooOld",
  too_big: "tooBig",
  empty_message: "emptyMessage",
  rate_limited: "rateLimited",
  not_handshake: "notHandshake",
  send_refused: "sendRefused",
};

/** The counts that a control message tells; reasons that are not known, and what is no count, are left out. */
export function readDrops(said: unknown): RelayDrops | undefined {
  const { type, to_client: toClient, to_server: toServer } = said as Record<string, unknown>;
  return type === "drops" ? { toClient: readCounts(toClient), toServer: readCounts(toServer) } : undefined;
}

function readCounts(said: unknown): RelayDropCounts {
  const counts: RelayDropCounts = {};
  for (const [name, reason] of Object.entries(REASONS)) {
    const count = (said as Record<string, unknown> | null | undefined)?.[name];
    if (Number.isSafeInteger(count) && (count as number) > 0) {
      counts[reason] = count as number;
    }
  }
  return counts;
}
