/** Pings servers without opening a connection. At a relay, pings always use a WebSocket, which every relay supports. */

import type { ErrorCode } from "./errors.js";
import { RakwireError } from "./errors.js";
import { checkNames, withDeadline } from "./options.js";
import { isPingScope, readPong, writePing } from "./raknet-wire.js";
import { fetchAnnounced } from "./transport/announced.js";
import type { Announced, CarrierEvents } from "./transport/carrier.js";
import { describeClose } from "./transport/carrier.js";
import { withPermission } from "./transport/local-network.js";
import type { Transport, TransportEvents } from "./transport/transport.js";
import { checkToken, directTransport, targetUrl } from "./transport/transport.js";
import { attempt, openWebSocket, readWebSocket } from "./transport/websocket.js";
import type { DiscoverOptions, PingOptions, PingScope, Pong } from "./types.js";
import { beforeAbort, deferred, PLATFORM_TIMERS } from "./waits.js";

export { RakwireError } from "./errors.js";
export type { DiscoverOptions, PingOptions, PingScope, Pong } from "./types.js";

const DEFAULT_TIMEOUT_MS = 5_000;
/** The options of `ping` except the target. */
const OPTIONS = ["scope", "token", "timeoutMs", "webSocket", "signal"];
/** The interval between pings in milliseconds. Pings are repeated because each ping or pong may be lost. */
const REPEAT_MS = 1_000;
/** The maximum number of servers pinged at a time, because a relay limits the clients per address. */
const AT_ONCE = 16;
/** Error codes that concern a single server and not the whole request. */
const UNAVAILABLE: readonly ErrorCode[] = ["no-answer", "relay-closed", "relay-unreachable", "server-unreachable", "incompatible-protocol"];

/**
 * Pings the RakNet server that the relay at `url` offers as `options.target`, or in Node the server at
 * `udp://HOST:PORT`. Needs neither a connection nor the WebAssembly. The ping is repeated every second until a pong
 * arrives.
 *
 * @throws RakwireError with the `code` of the cause, such as `no-answer` after `options.timeoutMs`; or the reason of
 * `options.signal`.
 */
export async function ping(url: string | URL, options: PingOptions = {}): Promise<Pong> {
  const { target = String(url), scope = "any", signal, timeoutMs = DEFAULT_TIMEOUT_MS } = options;
  if (!isPingScope(scope)) {
    throw new RakwireError("bad-option", `scope must be any or open-connections, not ${String(scope)}`);
  }
  checkNames(options, ["target", ...OPTIONS]);
  const open = openForPing(url, options);
  const failure = `${target} does not answer a ping within ${timeoutMs} ms`;
  const pong = withDeadline(signal, timeoutMs, ["no-answer", failure], (deadline) => ask(open, target, scope, deadline));
  return withPermission(pong, targetUrl(url, target).href);
}

/**
 * Pings several servers of a relay, up to 16 at a time. Returns the pongs of the servers that answered, in the order of
 * `options.targets`. For each server that does not answer in time, or to which the relay refuses access,
 * `options.onUnavailable` is called instead. If that callback throws, no further server is pinged.
 *
 * @throws RakwireError with the code `bad-option`, or `relay-unreachable` if no ping could reach the relay; or the
 * reason of `options.signal`.
 */
export async function discover(url: string | URL, options: DiscoverOptions): Promise<Pong[]> {
  const { targets, onUnavailable, ...rest } = options;
  checkNames(rest, OPTIONS);
  targets.forEach((target) => openForPing(url, { ...rest, target }));
  // The first failure cancels the remaining pings.
  const failed = new AbortController();
  const signal = AbortSignal.any([failed.signal, ...(rest.signal === undefined ? [] : [rest.signal])]);
  const pongs = new Map<string, Pong>();
  const failures: RakwireError[] = [];
  const waiting = targets.values();
  const askNext = async (): Promise<void> => {
    for (const target of waiting) {
      try {
        pongs.set(target, await ping(url, { ...rest, target, signal }));
      } catch (error) {
        if (signal.aborted || !(error instanceof RakwireError && UNAVAILABLE.includes(error.code))) {
          throw error;
        }
        failures.push(error);
        onUnavailable?.(target, error);
      }
    }
  };
  try {
    await Promise.all(Array.from({ length: AT_ONCE }, askNext));
  } finally {
    failed.abort();
  }
  const [failure] = failures;
  if (failure !== undefined && pongs.size === 0 && failures.every(({ code }) => code === "relay-unreachable")) {
    throw failure;
  }
  return targets.flatMap((target) => pongs.get(target) ?? []);
}

/** Repeats a ping until a pong arrives. */
async function ask(open: ReturnType<typeof openForPing>, target: string, scope: PingScope, deadline: AbortSignal): Promise<Pong> {
  deadline.throwIfAborted();
  const guid = crypto.getRandomValues(new BigUint64Array(1))[0] as bigint;
  const pong = deferred<Pong>();
  /** The sending time of each ping, by the timestamp in the ping. */
  const sent = new Map<bigint, number>();
  let lastSent = 0;
  let timer: ReturnType<typeof setInterval> | undefined;
  const sendPing = (): void => {
    lastSent = performance.now();
    const time = BigInt(Math.round(lastSent));
    sent.set(time, lastSent);
    transport.send(writePing(scope, time, guid));
  };
  const transport = open({
    onTransportOpen() {
      timer = setInterval(sendPing, REPEAT_MS);
      sendPing();
    },
    onDatagram(datagram) {
      const contents = readPong(datagram);
      if (contents !== undefined) {
        const { time, guid: identity, data, protocolVersion } = contents;
        const latencyMs = performance.now() - (sent.get(time) ?? lastSent);
        pong.resolve({ target, latencyMs, guid: identity, data, protocolVersion });
      }
    },
    onClose({ code, reason, relayCode }) {
      pong.reject(new RakwireError(code, reason, relayCode === undefined ? {} : { relayCode }));
    },
  });
  try {
    return await beforeAbort(deadline, pong.promise);
  } finally {
    clearInterval(timer);
    transport.close();
  }
}

type PingEvents = Pick<TransportEvents, "onTransportOpen" | "onDatagram" | "onClose">;

/** Checks the options, and returns a function that opens the transport to the server. */
function openForPing(address: string | URL, options: PingOptions): (events: PingEvents) => Pick<Transport, "send" | "close"> {
  const { target, token } = options;
  const url = targetUrl(address, target);
  const direct = directTransport(url);
  if (direct !== undefined) {
    const nothing = (): void => undefined;
    const others = { onInterrupted: nothing, onResumed: nothing, onRelayNotice: nothing };
    return (events) => direct({ url: url.href, carriers: [], resume: false }, { ...others, ...events });
  }
  checkToken(token);
  const webSocket = readWebSocket(options.webSocket);
  return (events) => {
    const question = new AbortController();
    const announced = async (): Promise<Announced> => (await fetchAnnounced(url, question.signal, PLATFORM_TIMERS)) ?? {};
    const request = { url, token, hasControl: false, webSocket, announced };
    const carrier = attempt((callbacks) => openWebSocket(request, callbacks), carrierEvents(url, events));
    return {
      send: (datagram) => carrier?.send(datagram),
      close() {
        // Aborts requests to the relay when the ping ends.
        question.abort();
        carrier?.close();
      },
    };
  };
}

/** Adapts the events of a transport to those of a carrier. */
function carrierEvents(url: URL, { onTransportOpen, onDatagram, onClose }: PingEvents): CarrierEvents {
  let wasOpen = false;
  return {
    onOpen() {
      wasOpen = true;
      onTransportOpen();
    },
    onDatagram,
    onControl: () => undefined,
    onClose: (close) => onClose(describeClose(url, close, wasOpen)),
  };
}
