// The goals for the figures of `cargo xtask bench npm`.

/** The maximum median time to send and receive a message of 100 bytes, in microseconds. */
const MAX_MESSAGE_US = 2;
/**
 * The maximum p99 round-trip time with a worker while the page is blocked, as a fraction of the p99 without a worker.
 */
const MAX_SHARE_OF_PAGE = 1 / 3;

/** Returns each goal with its name, the measured value, and true if it is met. */
export function goals({ message_us: messages, round_trip_ms: trips }) {
  const most = (name, unit, value, limit) => ({ name, unit, value, at_most: limit, met: value <= limit });
  return [
    ...Object.entries(messages).map(([protocol, us]) => most(`${protocol}: a message, median`, "µs", us, MAX_MESSAGE_US)),
    ...Object.entries(trips).map(([protocol, { page, worker }]) =>
      most(`${protocol}: round trip of the connection, p99, worker of page`, "share", worker.connection.p99 / page.connection.p99, MAX_SHARE_OF_PAGE),
    ),
  ];
}

/** Formats the goals as a table. */
export function table(reached) {
  const line = ({ name, unit, value, at_most: limit, met }) => `| ${name} | ${value.toFixed(2)} ${unit} | at most ${limit.toFixed(2)} | ${met ? "met" : "missed"} |`;
  return ["| goal | measured | limit | |", "|---|---|---|---|", ...reached.map(line)].join("\n");
}
