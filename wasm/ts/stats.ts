/** The counters of a connection. */

/** The names of the numbers that Rust tells, in their order; the last two are those of the whole peer. */
const NAMES = [
  "roundTripMs",
  "pingMs",
  "lowestPingMs",
  "congestionWindow",
  "inFlight",
  "bytesWaiting",
  "mtu",
  "messagesSent",
  "messagesReceived",
  "datagramsSent",
  "datagramsReceived",
  "datagramsLost",
  "datagramsLate",
  "datagramsAcknowledged",
  "clockDifferenceMs",
  "bytesSentLastSecond",
  "bytesReceivedLastSecond",
  "lossLastSecond",
  "maxMessageLength",
  "bytesSent",
  "bytesReceived",
] as const;

type Name = (typeof NAMES)[number];
/** What only RakNet measures. */
type OfRakNet = "clockDifferenceMs" | "bytesSentLastSecond" | "bytesReceivedLastSecond" | "lossLastSecond";

/** What a peer counts. */
export type PeerStats = Record<Exclude<Name, OfRakNet>, number> &
  Partial<Record<OfRakNet, number>> & { drops: Record<string, number> };

/** Makes an object of the numbers of a peer, in their order; those that follow are counts of drops, which have these names. */
export function describeStats(numbers: ArrayLike<number>, dropNames: readonly string[]): PeerStats {
  const stats = { drops: {} } as PeerStats;
  NAMES.forEach((name, index) => {
    const number = numbers[index] ?? 0;
    // What is not known is no number.
    if (!Number.isNaN(number)) {
      stats[name] = number;
    }
  });
  dropNames.forEach((name, index) => {
    const times = numbers[NAMES.length + index] ?? 0;
    if (times > 0) {
      stats.drops[name] = times;
    }
  });
  return stats;
}
