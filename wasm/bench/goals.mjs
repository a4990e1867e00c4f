// What the figures of `cargo xtask bench npm` should reach.

/** The longest time of a message of 100 bytes that is sent and received, at the median. */
const MOST_MESSAGE_US = 2;
/** The part of the page's p99 that a worker may take, while the page is blocked. */
const MOST_OF_PAGE = 1 / 3;

/** Each goal by its name, with the value that was measured and whether it is met. */
export function goals({ message_us: messages, round_trip_ms: trips }) {
  const most = (name, unit, value, limit) => ({ name, unit, value, at_most: limit, met: value <= limit });
  return [
    ...Object.entries(messages).map(([protocol, us]) => most(`${protocol}: a message, median`, "µs", us, MOST_MESSAGE_US)),
    ...Object.entries(trips).map(([protocol, { page, worker }]) =>
      most(`${protocol}: round trip of the connection, p99, worker of page`, "share", worker.connection.p99 / page.connection.p99, MOST_OF_PAGE),
    ),
  ];
}

/** The goals as a table. */
export function table(reached) {
  const line = ({ name, unit, value, at_most: limit, met }) => `| ${name} | ${value.toFixed(2)} ${unit} | at most ${limit.toFixed(2)} | ${met ? "met" : "missed"} |`;
  return ["| goal | measured | limit | |", "|---|---|---|---|", ...reached.map(line)].join("\n");
}
