// The failure table: attempts to connect that fail, and connections that are lost, with the expected errors in every
// runtime. `endpoints` are the endpoints of `endpoints.mjs`, and `rakwire` is the package.

/** The time limit of an attempt. An attempt that exceeds it fails with the code of its deadline. */
const DEADLINE_MS = 30_000;
/** The deadline if the attempt does not fail earlier. */
const SHORT_MS = 1_000;
/** The time for which a relay keeps a flow by default, which is the deadline of a connection with a lost path. */
const FLOW_MS = 30_000;
/** The margin added to every deadline for a busy machine. A longer wait counts as a hang. */
export const MARGIN_MS = 30_000;

/** A close code that Deno treats as a protocol error, so that its WebSocket closes with 1006. */
const UNKNOWN_TO_DENO = 1014;

/** Attempts of `connect`: the endpoint, the options and the expected outcome of each. */
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

/** Attempts of `ping` at the endpoints that do not require a connection. */
const PING = Object.fromEntries(
  Object.entries({ ...CONNECT, "silent server": { ...CONNECT["silent server"], code: "no-answer" }, "black hole": { ...CONNECT["black hole"], code: "no-answer" } })
    .filter(([what]) => what !== "wrong protocol")
    .map(([what, attempt]) => [`ping: ${what}`, { ...attempt, isPing: true }]),
);

const DEAD = { at: "deadServer", scheme: "udp", path: "", options: { timeoutMs: SHORT_MS } };
/** Attempts to connect directly to a server over UDP. Deno's sockets do not report ICMP errors. */
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

/** The close codes of a proxy that restarts, fails or has lost the relay. */
const BY_PROXIES = [1001, 1011, 1012, 1013, 1014];
const GOES_ON = ["interrupted", "resumed"];
/** Open connections over a WebSocket: the change to the path to the relay, and the expected events. */
const LATER = {
  cut: { change: "cut", events: GOES_ON },
  silence: { change: "silence", events: GOES_ON },
  ...Object.fromEntries(BY_PROXIES.map((code) => [`open: proxy code ${code}`, { at: "openProxy", change: `close-${code}`, events: GOES_ON }])),
  "open: 4429": { at: "openProxy", change: "close-4429", events: ["relay-closed, 4429"] },
  ...Object.fromEntries(
    [...BY_PROXIES, 4429].map((code) => [`resumption refused: ${code}`, { at: "openProxy", change: `refuse-${code}`, events: GOES_ON }]),
  ),
  "resumption unanswered": { at: "openProxy", change: "ignore", heal: "answer", events: GOES_ON },
  "resumption unanswered: close": { at: "openProxy", change: "ignore", closesAfter: "ignored", heal: "answer", events: ["interrupted", "local"] },
};

/** The rows of {@link LATER} for a transport over UDP. The path is blocked until the connection is interrupted. */
const later = (transport) => ({
  [`cut, ${transport}`]: { transport, change: "cut", heal: "heal", events: GOES_ON },
  [`silence, ${transport}`]: { transport, change: "silence", events: GOES_ON },
});

/** The errors in a page with a policy (CSP) that blocks the relay. */
const FORBIDDEN = {
  ...Object.fromEntries(["auto", "websocket", "webtransport", "webrtc"].map((transport) => [`policy: connect, ${transport}`, { options: { transport } }])),
  "policy: ping": { isPing: true },
  "policy: discover": { isPing: true, discovers: true },
};

/** Returns the outcome of a promise, or a text if it does not settle within its deadline plus {@link MARGIN_MS}. */
async function byDeadline(deadlineMs, promise) {
  let timer;
  const late = new Promise((resolve) => (timer = setTimeout(resolve, deadlineMs + MARGIN_MS, "the attempt exceeds its deadline")));
  const seen = await Promise.race([promise, late]);
  clearTimeout(timer);
  return seen;
}

/**
 * Makes all attempts and returns a row for each: the attempt, the outcome, its duration in milliseconds, the expected
 * outcome, and the deadline. `control` changes the path of an endpoint. `ways` are the paths of the transports over UDP,
 * as returned by `startWay`.
 */
export async function table(rakwire, endpoints, { options = {}, control, udp, ways = {} } = {}) {
  const rows = [];
  for (const [what, attempt] of Object.entries({ ...CONNECT, ...PING, ...DIRECT[udp] })) {
    rows.push(await row(rakwire, endpoints, what, attempt, options));
  }
  for (const [what, change] of Object.entries(LATER)) {
    rows.push(await loseWay(rakwire, `ws://${endpoints[change.at ?? "way"]}/ws`, what, change, control, options));
  }
  for (const [transport, { url, control }] of Object.entries(ways)) {
    for (const [what, change] of Object.entries(later(transport))) {
      rows.push(await loseWay(rakwire, url, what, change, (name) => fetch(control + name), options));
    }
  }
  return rows;
}

/** Makes the attempts of a page with a policy that blocks the relay. */
export async function forbiddenTable(rakwire, endpoints) {
  const rows = [];
  for (const [what, attempt] of Object.entries(FORBIDDEN)) {
    rows.push(await row(rakwire, endpoints, what, { at: "relay", code: "relay-unreachable", isTransient: true, ...attempt }, {}));
  }
  return rows;
}

/** The time in milliseconds after which a connection gives up on a worker that does not close it. */
const WORKER_MS = 15_000;
/** The time in milliseconds after which a worker that sends nothing is terminated. */
const SILENT_WORKER_MS = 20_000;

/**
 * Makes attempts with a worker that hangs before or after the connection opens. `start` starts a worker that hangs on
 * request.
 */
export async function hungTable({ connect, createWorker, isTransient }, endpoints, start) {
  const rows = [];
  const add = async (what, expected, deadlineMs, ending) => {
    const startedAt = performance.now();
    const outcome = ending().then((end) => ({ code: end.code, isTransient: isTransient(end) }));
    rows.push({ what, seen: await byDeadline(deadlineMs, outcome), expected, ms: Math.round(performance.now() - startedAt), deadlineMs });
  };
  let running;
  const open = (timeoutMs, begin = () => undefined) => {
    const worker = createWorker(() => {
      running = start();
      begin();
      return running;
    });
    return connect(`ws://${endpoints.relay}/ws`, { target: "game", timeoutMs, worker });
  };
  const hang = () => running.postMessage("hang");
  await add("worker hangs: connect", { code: "timeout", isTransient: true }, SHORT_MS, () => open(SHORT_MS, hang).catch((error) => error));
  const closing = await open(DEADLINE_MS);
  hang();
  await add("worker hangs: close", { code: "local", isTransient: false }, WORKER_MS, () => closing.close());
  const staying = await open(DEADLINE_MS);
  hang();
  await add("worker hangs", { code: "worker-unavailable", isTransient: true }, SILENT_WORKER_MS, () => staying.closed);
  return rows;
}

async function row(rakwire, endpoints, what, attempt, options) {
  const startedAt = performance.now();
  const deadlineMs = attempt.options?.timeoutMs ?? DEADLINE_MS;
  const seen = await byDeadline(deadlineMs, tryTo(rakwire, endpoints, attempt, options));
  const { code, isTransient: mayPass = false } = attempt;
  const relayCode = attempt.relayCode === UNKNOWN_TO_DENO && "Deno" in globalThis ? undefined : attempt.relayCode;
  const expected = { code, ...(relayCode && { relayCode }), ...(code !== "open" && { isTransient: mayPass || ["timeout", "no-answer"].includes(code) }) };
  return { what, seen, expected, ms: Math.round(performance.now() - startedAt), deadlineMs };
}

async function tryTo({ connect, ping, discover, isTransient }, endpoints, { at, scheme = "ws", path = "/ws", options, isPing = false, discovers = false }, more) {
  const url = `${scheme}://${endpoints[at]}${path}`;
  const settings = { target: "game", timeoutMs: DEADLINE_MS, ...more, ...options };
  try {
    if (isPing) {
      const { transport: _, worker: __, target, ...rest } = settings;
      await (discovers ? discover(url, { ...rest, targets: [target, "other"] }) : ping(url, { ...rest, target }));
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

async function loseWay({ connect }, url, what, { transport = "websocket", change, heal, closesAfter, events }, control, options) {
  const connection = await connect(url, { target: "game", timeoutMs: DEADLINE_MS, silenceTimeoutMs: FLOW_MS, ...options, transport });
  if (transport !== "websocket") {
    // The relay answers the flow request that the connection sent on opening. The echo arrives after that answer.
    connection.send(Uint8Array.of(0xfe), { reliability: "reliable" });
    await connection.receive();
  }
  const seen = [];
  const goesOn = new Promise((resolve) => connection.addEventListener("resumed", () => resolve(seen.push("resumed"))));
  connection.addEventListener("interrupted", () => {
    seen.push("interrupted");
    if (heal !== undefined && closesAfter === undefined) void control(heal);
  });
  const ends = connection.closed.then(({ code, relayCode }) => seen.push(relayCode === undefined ? code : `${code}, ${relayCode}`));
  const startedAt = performance.now();
  await control(change);
  // A silent carrier is only detected while an answer is outstanding. Fails if the connection has closed.
  try {
    connection.send(Uint8Array.of(0xfe));
  } catch {
    await ends;
  }
  if (closesAfter !== undefined) {
    await control(closesAfter);
    void connection.close();
  }
  await byDeadline(FLOW_MS, closesAfter === undefined ? Promise.race([goesOn, ends]) : ends);
  const ms = Math.round(performance.now() - startedAt);
  const outcome = [...seen];
  await connection.close();
  if (closesAfter !== undefined) await control(heal);
  return { what, seen: { events: outcome }, expected: { events }, ms, deadlineMs: FLOW_MS };
}
