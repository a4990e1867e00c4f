/** Connections one after the other: when one is lost, the next one is opened. */

import { RakwireError } from "./errors.js";
import { report } from "./events.js";
import { checkNames, readInteger } from "./options.js";
import type { CloseInfo, Connection } from "./types.js";
import { MAX_TIMEOUT_MS } from "./types.js";
import { beforeAbort } from "./waits.js";

export { RakwireError } from "./errors.js";
export type { ErrorCode, RakwireErrorOptions } from "./errors.js";

/** Opens a connection. The signal is that of the options, for `connect` to stop with it. */
export type OpenConnection<C extends Connection> = (signal: AbortSignal | undefined) => Promise<C>;

/**
 * Opens a connection with `open`, and another one each time that it is lost, after growing pauses.
 *
 * ```ts
 * import { connect } from "rakwire";
 * import { connections } from "rakwire/reconnect";
 *
 * for await (const connection of connections((signal) => connect(url, { target: "game", signal }))) {
 *   join(connection);
 *   for await (const { bytes } of connection) {
 *     handle(bytes);
 *   }
 * }
 * ```
 *
 * Each is a new connection, and a new player to the server: what the one before had under way is not sent again. Its receipts
 * resolve to `unknown`, and a reliable message without one may or may not have arrived.
 *
 * The next one is opened when this one has ended and the loop has asked for it. The loop ends when a connection was closed here, or
 * has ended for a reason that no other attempt would change, which {@link Connection.closed} tells. Whoever leaves the loop closes
 * the connection.
 *
 * @throws RakwireError with the code `bad-option`; and the iteration with the error of the last attempt, or the reason of the
 * signal.
 */
export function connections<C extends Connection>(
  open: OpenConnection<C>,
  options: ReconnectOptions = {},
): AsyncGenerator<C, void, undefined> {
  return openEach(open, readReconnect(options));
}

async function* openEach<C extends Connection>(
  open: OpenConnection<C>,
  settings: ReconnectSettings,
): AsyncGenerator<C, void, undefined> {
  const { signal, shouldRetry } = settings;
  const retries = new Retries(settings);
  for (;;) {
    const connection = await openNext(open, signal, retries);
    const openedAt = performance.now();
    let end: CloseInfo | undefined;
    try {
      yield connection;
      end = await connection.whenClosed({ signal });
    } finally {
      if (end === undefined) {
        await leave(connection, signal);
      }
    }
    if (end.code === "local" || !shouldRetry(end)) {
      return;
    }
    await retries.afterLoss(end, performance.now() - openedAt);
  }
}

/** The next connection that opens. */
async function openNext<C extends Connection>(open: OpenConnection<C>, signal: AbortSignal | undefined, retries: Retries): Promise<C> {
  for (;;) {
    signal?.throwIfAborted();
    try {
      return await openOnce(open, signal);
    } catch (error) {
      await retries.afterFailure(error);
    }
  }
}

async function openOnce<C extends Connection>(open: OpenConnection<C>, signal: AbortSignal | undefined): Promise<C> {
  const opening = open(signal);
  try {
    return await beforeAbort(signal, opening);
  } catch (error) {
    // One that opens although the signal was aborted has no owner.
    opening.then((connection) => connection.close(), () => undefined);
    throw error;
  }
}

/** Closes a connection. Whoever has aborted does not wait for it. */
async function leave(connection: Connection, signal: AbortSignal | undefined): Promise<void> {
  const closing = connection.close();
  if (signal?.aborted !== true) {
    await closing;
  }
}

const DEFAULT_MAX_ATTEMPTS = 10;
const DEFAULT_MIN_DELAY_MS = 500;
const DEFAULT_MAX_DELAY_MS = 30_000;

/** A pause before another attempt. */
export interface Retry {
  /** The error of the attempt that failed, or how the connection before has ended. */
  readonly cause: unknown;
  /** How many attempts have failed in succession: 0 after a connection that was open. */
  readonly failures: number;
  /** How long the pause is. */
  readonly delayMs: number;
}

/** How connections are opened again. */
export interface ReconnectOptions {
  /** Ends everything: the connection is closed, and the iteration rejects with the reason of the signal. */
  signal?: AbortSignal | undefined;
  /** How many attempts in succession may fail until the error of the last one is thrown, 1 or more, or `Infinity`. Default 10. */
  maxAttempts?: number;
  /**
   * The pause after a failure, which doubles with each further one. A pause is a random part of it, half at least, so that not
   * all clients of a relay come back at the same moment. Default 500.
   */
  minDelayMs?: number;
  /** The longest pause. Default 30,000, or `minDelayMs` if that is longer. */
  maxDelayMs?: number;
  /**
   * Whether to try again after an error that `open` has thrown or the end of a connection. It is not asked about a connection
   * that was closed here. Default: {@link isTransient}.
   */
  shouldRetry?: (cause: unknown) => boolean;
  /** Is told of each pause when it begins. */
  onRetry?: (retry: Retry) => void;
}

/** Checked options. */
type ReconnectSettings = Required<ReconnectOptions>;

const OPTIONS = ["signal", "maxAttempts", "minDelayMs", "maxDelayMs", "shouldRetry", "onRetry"];

/** The checked options. */
function readReconnect(options: ReconnectOptions): ReconnectSettings {
  checkNames(options, OPTIONS);
  return readValues(options);
}

function readValues({
  signal,
  maxAttempts = DEFAULT_MAX_ATTEMPTS,
  minDelayMs = DEFAULT_MIN_DELAY_MS,
  maxDelayMs = Math.max(minDelayMs, DEFAULT_MAX_DELAY_MS),
  shouldRetry = isTransient,
  onRetry = () => undefined,
}: ReconnectOptions): ReconnectSettings {
  if (maxAttempts !== Infinity) {
    readInteger("maxAttempts", maxAttempts, 1, Number.MAX_SAFE_INTEGER);
  }
  readInteger("minDelayMs", minDelayMs, 1, MAX_TIMEOUT_MS);
  readInteger("maxDelayMs", maxDelayMs, minDelayMs, MAX_TIMEOUT_MS);
  if (typeof shouldRetry !== "function" || typeof onRetry !== "function") {
    throw new RakwireError("bad-option", "shouldRetry and onRetry must be functions");
  }
  return { signal, maxAttempts, minDelayMs, maxDelayMs, shouldRetry, onRetry };
}

/** A connection that does not last so long leaves the pauses as long as they are, or a server that drops everybody would be dialled incessantly. */
const LASTING_MS = 5_000;

/** Counts failures, and makes the pauses between attempts. */
class Retries {
  readonly #settings: ReconnectSettings;
  #delayMs: number;
  #failures = 0;

  constructor(settings: ReconnectSettings) {
    this.#settings = settings;
    this.#delayMs = settings.minDelayMs;
  }

  /** Pauses after an attempt that failed, or throws its error again if there is to be no other one. */
  async afterFailure(error: unknown): Promise<void> {
    const { signal, maxAttempts, shouldRetry } = this.#settings;
    signal?.throwIfAborted();
    this.#failures += 1;
    if (this.#failures >= maxAttempts || !shouldRetry(error)) {
      throw error;
    }
    await this.#pause(error);
  }

  /** Pauses after a connection that was open for so long and was lost. */
  async afterLoss(cause: unknown, lastedMs: number): Promise<void> {
    this.#failures = 0;
    if (lastedMs >= LASTING_MS) {
      this.#delayMs = this.#settings.minDelayMs;
    }
    await this.#pause(cause);
  }

  async #pause(cause: unknown): Promise<void> {
    const { signal, maxDelayMs, onRetry } = this.#settings;
    const delayMs = this.#delayMs * (0.5 + Math.random() / 2);
    this.#delayMs = Math.min(2 * this.#delayMs, maxDelayMs);
    try {
      onRetry({ cause, failures: this.#failures, delayMs });
    } catch (error) {
      report(error);
    }
    let timer: ReturnType<typeof setTimeout> | undefined;
    try {
      await beforeAbort(signal, new Promise((resolve) => (timer = setTimeout(resolve, delayMs))));
    } finally {
      clearTimeout(timer);
    }
  }
}

/** The codes of ends of connections and of errors of `connect`. `relay-closed` is one of them by the code of the relay. */
const TRANSIENT_CODES: readonly unknown[] = [
  "lost",
  // It may come back, where the browser kept it.
  "page-left",
  "relay-unreachable",
  "server-unreachable",
  "no-answer",
  "handshake-timeout",
  "timeout",
  "server-full",
  "recently-connected",
  // The server has not noticed yet that the connection before was lost.
  "already-connected",
];
/** The worker hangs or has failed, and the next connection starts another one. One that cannot be started fails in `connect`. */
const WORKER_LOST = "worker-unavailable";

/**
 * Close codes of a relay, or of a proxy before it, that takes a new client later: it shuts down or restarts, the connection or
 * the socket to the server was lost, it is full, its server cannot be reached, it heard nothing, or the address has its share.
 */
const TRANSIENT_RELAY_CODES: readonly unknown[] = [1001, 1006, 1011, 1012, 1013, 1014, 4408, 4429];

/**
 * Whether another attempt may succeed after an error of `connect`, or after the end of a connection: a relay or a server that is
 * gone or full may come back, and a worker that ends an open connection is replaced. Who was refused, was disconnected by the server
 * or by the operator of the relay, or has closed the connection is not to come again.
 */
export function isTransient(cause: unknown): boolean {
  const { code, relayCode } = Object(cause) as { code?: unknown; relayCode?: unknown };
  if (code === "relay-closed") {
    // Without a code the relay was there and had forgotten the flow, as after a restart.
    return relayCode === undefined || TRANSIENT_RELAY_CODES.includes(relayCode);
  }
  if (code === WORKER_LOST) {
    return !(cause instanceof Error);
  }
  return TRANSIENT_CODES.includes(code);
}
