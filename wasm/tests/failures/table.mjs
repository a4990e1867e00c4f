// What a page, or a program in another runtime, sees when a connection cannot be opened, or is lost: one list of attempts for
// all runtimes. `places` are those of `places.mjs`, and `rakwire` is the package.

/** How long an attempt may take. What ends by it ends with the code of its deadline. */
const DEADLINE_MS = 30_000;
/** The deadline where nothing else ends the attempt. */
const SHORT_MS = 1_000;

/** A close code that Deno takes for a broken frame, which ends its WebSocket with 1006. */
const UNKNOWN_TO_DENO = 1014;

/** Attempts of `connect`, by what is tried: where, with what, and what it leads to. */
const CONNECT = {
  "relay down": { at: "down", code: "relay-unreachable", isTransient: true },
  "refused origin": { at: "foreign", code: "origin-refused", relayCode: 4403 },
  "banned address": { at: "banning", code: "banned", relayCode: 4403 },
  "wrong path": { at: "relay", path: "/wss", code: "open" },
  "no path": { at: "relay", path: "/", code: "open" },
  "wrong target": { at: "relay", options: { target: "none" }, code: "relay-closed", relayCode: 4404 },
  "no token": { at: "withTokens", code: "relay-closed", relayCode: 4401 },
  "bad token": { at: "withTokens", options: { token: "a.b.c" }, code: "relay-closed", relayCode: 4401 },
  "dead server": { at: "relay", options: { target: "dead" }, code: "server-unreachable", relayCode: 4502, isTransient: true },
  "silent server": { at: "relay", options: { target: "silent", timeoutMs: SHORT_MS }, code: "timeout" },
  "wrong protocol": { at: "relay", options: { protocol: "game" }, code: "incompatible-protocol", relayCode: 4406 },
  "black hole": { at: "blackHole", options: { timeoutMs: SHORT_MS }, code: "timeout" },
  "4429": { at: "crowded", code: "relay-closed", relayCode: 4429, isTransient: true },
  ...Object.fromEntries(
    [1001, 1011, 1012, 1013, 1014].map((relayCode) => [
      `proxy code ${relayCode}`,
      { at: "proxy", path: `/ws?code=${relayCode}`, code: "relay-closed", relayCode, isTransient: true },
    ]),
  ),
};

/** Attempts of `ping`: the same where they need no connection. */
const PING = Object.fromEntries(
  Object.entries({ ...CONNECT, "silent server": { ...CONNECT["silent server"], code: "no-answer" }, "black hole": { ...CONNECT["black hole"], code: "no-answer" } })
    .filter(([what]) => what !== "wrong protocol")
    .map(([what, attempt]) => [`ping: ${what}`, { ...attempt, isPing: true }]),
);

const DEAD = { at: "deadServer", scheme: "udp", path: "", options: { timeoutMs: SHORT_MS } };
/** Attempts straight to a server, by whether the sockets of a runtime tell of ICMP errors: those of Deno do not. */
const DIRECT = {
  "with ICMP": {
    "udp: dead server": { ...DEAD, code: "server-unreachable", isTransient: true },
    "ping, udp: dead server": { ...DEAD, isPing: true, code: "server-unreachable", isTransient: true },
  },
  "without ICMP": {
    "udp: dead server": { ...DEAD, code: "timeout" },
    "ping, udp: dead server": { ...DEAD, isPing: true, code: "no-answer" },
  },
};

/** Connections that are open, and what happens to the way to the relay then. */
const LATER = {
  cut: { heal: (control) => control("cut"), events: ["interrupted", "resumed"] },
  silence: { heal: (control) => control("silence"), events: ["interrupted", "resumed"] },
};

/**
 * Makes all attempts, each of which leads to a row: what was tried, what was seen, in how many milliseconds, and what was
 * expected. `control` does something to the way of the place `way`.
 */
export async function table({ connect, ping, isTransient }, places, { options = {}, control, udp } = {}) {
  const rows = [];
  for (const [what, attempt] of Object.entries({ ...CONNECT, ...PING, ...DIRECT[udp] })) {
    const startedAt = performance.now();
    const seen = await tryTo({ connect, ping, isTransient }, places, attempt, options);
    const { code, isTransient: mayPass = false } = attempt;
    const relayCode = attempt.relayCode === UNKNOWN_TO_DENO && "Deno" in globalThis ? undefined : attempt.relayCode;
    const expected = { code, ...(relayCode && { relayCode }), ...(code !== "open" && { isTransient: mayPass || ["timeout", "no-answer"].includes(code) }) };
    rows.push({ what, seen, expected, ms: Math.round(performance.now() - startedAt) });
  }
  for (const [what, { heal, events }] of Object.entries(control === undefined ? {} : LATER)) {
    rows.push(await loseWay({ connect }, places.way, what, events, () => heal(control), options));
  }
  return rows;
}

async function tryTo({ connect, ping, isTransient }, places, { at, scheme = "ws", path = "/ws", options, isPing = false }, more) {
  const url = `${scheme}://${places[at]}${path}`;
  const settings = { target: "game", timeoutMs: DEADLINE_MS, ...more, ...options };
  try {
    if (isPing) {
      const { transport: _, worker: __, ...rest } = settings;
      await ping(url, rest);
    } else {
      const connection = await connect(url, settings);
      await connection.close();
    }
    return { code: "open" };
  } catch (error) {
    const { code = String(error), relayCode } = error;
    const expectedCode = relayCode === 1006 ? undefined : relayCode;
    return { code, ...(expectedCode && { relayCode: expectedCode }), isTransient: isTransient(error) };
  }
}

async function loseWay({ connect }, way, what, events, lose, options) {
  const connection = await connect(`ws://${way}/ws`, { target: "game", timeoutMs: DEADLINE_MS, ...options, transport: "websocket" });
  const seen = [];
  const resumed = new Promise((resolve) => {
    for (const name of ["interrupted", "resumed", "close"]) {
      connection.addEventListener(name, () => {
        seen.push(name);
        if (name !== "interrupted") resolve();
      });
    }
  });
  const startedAt = performance.now();
  await lose();
  // Something is sent, so that something is missed.
  connection.send(Uint8Array.of(0xfe));
  await resumed;
  const ms = Math.round(performance.now() - startedAt);
  await connection.close();
  return { what, seen: { events: seen.filter((name) => name !== "close") }, expected: { events }, ms };
}
