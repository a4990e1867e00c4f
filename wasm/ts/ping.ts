/** Asks servers what they say of themselves, without a connection. */

import { withDeadline } from "./deadline.js";
import { RakwireError } from "./errors.js";
import { isPingScope, readPong, writePing } from "./offline.js";
import { readTransport } from "./options.js";
import type { TransportSettings } from "./transport/transport.js";
import { openTransport } from "./transport/transport.js";
import type { DiscoverOptions, PingOptions, PingScope, Pong } from "./types.js";
import { beforeAbort, deferred } from "./waits.js";

const DEFAULT_TIMEOUT_MS = 5_000;
/** The time between two pings, either of which may be lost. */
const REPEAT_MS = 1_000;

interface PingSettings {
  transport: TransportSettings;
  target: string;
  scope: PingScope;
}

/**
 * Asks the RakNet server that the relay at `url` offers as `options.target` what it says of itself, or in Node the server at
 * `udp://HOST:PORT`. It needs neither a connection nor the WebAssembly, and is repeated every second.
 *
 * @throws RakwireError whose `code` names the cause, such as `no-answer` after `options.timeoutMs`, or the reason of
 * `options.signal`.
 */
export async function ping(url: string | URL, options: PingOptions = {}): Promise<Pong> {
  const { target = String(url), scope = "any", signal, timeoutMs = DEFAULT_TIMEOUT_MS } = options;
  if (!isPingScope(scope)) {
    throw new RakwireError("bad-option", `scope must be any or open-connections, not ${String(scope)}`);
  }
  const settings = { transport: readTransport(url, { ...options, resume: false }), target, scope };
  const failure = `${target} does not answer a ping within ${timeoutMs} ms`;
  return withDeadline(signal, timeoutMs, ["no-answer", failure], (deadline) => ask(settings, deadline));
}

/**
 * Asks several servers of a relay at the same time, and returns the pongs of those that answered in time, in the order of
 * `options.targets`. That nobody answers is no error.
 *
 * @throws RakwireError as `ping` does, for other causes than `no-answer`, or the reason of `options.signal`.
 */
export async function discover(url: string | URL, options: DiscoverOptions): Promise<Pong[]> {
  const { targets, ...rest } = options;
  const pongs = targets.map(async (target) => {
    try {
      return [await ping(url, { ...rest, target })];
    } catch (error) {
      if (error instanceof RakwireError && error.code === "no-answer") {
        return [];
      }
      throw error;
    }
  });
  return (await Promise.all(pongs)).flat();
}

/** Repeats a ping until there is a pong. */
async function ask({ transport: settings, target, scope }: PingSettings, deadline: AbortSignal): Promise<Pong> {
  deadline.throwIfAborted();
  const guid = crypto.getRandomValues(new BigUint64Array(1))[0] as bigint;
  const pong = deferred<Pong>();
  /** When each ping was sent, by the time that it carries. */
  const sent = new Map<bigint, number>();
  let lastSent = 0;
  let timer: ReturnType<typeof setInterval> | undefined;
  const sendPing = (): void => {
    lastSent = performance.now();
    const time = BigInt(Math.round(lastSent));
    sent.set(time, lastSent);
    transport.send(writePing(scope, time, guid));
  };
  const transport = openTransport(settings, {
    onOpen() {
      timer = setInterval(sendPing, REPEAT_MS);
      sendPing();
    },
    onDatagram(datagram) {
      const contents = readPong(datagram);
      if (contents !== undefined) {
        const { time, guid: identity, data } = contents;
        const latencyMs = performance.now() - (sent.get(time) ?? lastSent);
        pong.resolve({ target, latencyMs, guid: identity, data });
      }
    },
    onInterrupted: () => undefined,
    onResumed: () => undefined,
    onRelayDrops: () => undefined,
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

export { RakwireError } from "./errors.js";
export type { DiscoverOptions, PingOptions, PingScope, Pong } from "./types.js";
