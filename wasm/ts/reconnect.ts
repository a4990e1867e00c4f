/** Reconnecting: opens a new connection each time the previous one is lost. */

import { RakwireError } from "./errors.js";
import { report } from "./events.js";
import { checkNames, readInteger } from "./options.js";
import type { CloseInfo, Connection } from "./types.js";
import { MAX_TIMEOUT_MS } from "./types.js";
import { beforeAbort } from "./waits.js";

export { RakwireError } from "./errors.js";
export type { ErrorCode, RakwireErrorOptions } from "./errors.js";

/** Opens a connection. Pass the signal on to `connect`, so that aborting also cancels the attempt. */
export type OpenConnection<C extends Connection> = (signal: AbortSignal | undefined) => Promise<C>;

/**
 * Opens a connection with `open`, and a new connection whenever the previous one is lost, with exponential back-off.
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
 * The server sees each connection as a new player. Messages in transit are not resent: their receipts resolve to
 * `unknown`, and a reliable message without a receipt may or may not have arrived.
 *
 * The next connection is opened when the previous one has closed and the loop requests its next element. The loop ends
 * when a connection was closed locally or for a permanent reason, which {@link Connection.closed} returns. Leaving the
 * loop closes the connection.
 *
 * @throws RakwireError with the code `bad-option`. The iteration throws the error of the last attempt, or the reason of
 * the signal.
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

/** Opens the next connection, retrying failed attempts. */
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
    // Closes a connection that opens after the signal was aborted, because no caller receives it.
    opening.then((connection) => connection.close(), () => undefined);
    throw error;
  }
}

/** Closes a connection. Does not wait for it if the signal is aborted. */
async function leave(connection: Connection, signal: AbortSignal | undefined): Promise<void> {
  const closing = connection.close();
  if (signal?.aborted !== true) {
    await closing;
  }
}

const DEFAULT_MAX_ATTEMPTS = 10;
const DEFAULT_MIN_DELAY_MS = 500;
const DEFAULT_MAX_DELAY_MS = 30_000;

/** Describes a pause before the next attempt. */
export interface Retry {
  /** The error of the failed attempt, or the close information of the lost connection. */
  readonly cause: unknown;
  /** The number of consecutive failed attempts; 0 after the loss of an open connection. */
  readonly failures: number;
  /** The duration of the pause in milliseconds. */
  readonly delayMs: number;
}

/** Options of reconnecting. */
export interface ReconnectOptions {
  /** Aborting it closes the connection and rejects the iteration with the reason of the signal. */
  signal?: AbortSignal | undefined;
  /**
   * The number of consecutive failed attempts after which the last error is thrown: 1 or more, or `Infinity`. Default:
   * 10.
   */
  maxAttempts?: number;
  /**
   * The base pause after the first failure in milliseconds. It doubles with each further failure. The actual pause is
   * random, between half of it and all of it, so that the clients of a relay do not reconnect simultaneously. Default:
   * 500.
   */
  minDelayMs?: number;
  /** The maximum base pause in milliseconds. Default: 30,000, or `minDelayMs` if that is longer. */
  maxDelayMs?: number;
  /**
   * Returns true to retry after an error of `open` or the close of a connection. Not called after a local close.
   * Default: {@link isTransient}.
   */
  shouldRetry?: (cause: unknown) => boolean;
  /** Called at the beginning of each pause. */
  onRetry?: (retry: Retry) => void;
}

/** Options with defaults applied. */
type ReconnectSettings = Required<ReconnectOptions>;

const OPTIONS = ["signal", "maxAttempts", "minDelayMs", "maxDelayMs", "shouldRetry", "onRetry"];

/** Checks the options and applies defaults. */
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

/**
 * A connection that was open for less than this, in milliseconds, does not reset the back-off. Otherwise a server that
 * drops every client would be dialled continuously.
 */
const LASTING_MS = 5_000;

/** Counts failures and determines the pauses between attempts. */
class Retries {
  readonly #settings: ReconnectSettings;
  #delayMs: number;
  #failures = 0;

  constructor(settings: ReconnectSettings) {
    this.#settings = settings;
    this.#delayMs = settings.minDelayMs;
  }

  /** Pauses after a failed attempt, or throws its error if that was the last attempt. */
  async afterFailure(error: unknown): Promise<void> {
    const { signal, maxAttempts, shouldRetry } = this.#settings;
    signal?.throwIfAborted();
    this.#failures += 1;
    if (this.#failures >= maxAttempts || !shouldRetry(error)) {
      throw error;
    }
    await this.#pause(error);
  }

  /** Pauses after the loss of a connection that was open for `lastedMs`. */
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

/**
 * Codes of closed connections and `connect` errors after which a retry may succeed. For `relay-closed`, it also depends
 * on the close code of the relay.
 */
const TRANSIENT_CODES: readonly unknown[] = [
  "lost",
  // The user may return to the page through the back/forward cache.
  "page-left",
  "relay-unreachable",
  "server-unreachable",
  "no-answer",
  "handshake-timeout",
  "timeout",
  "server-full",
  "recently-connected",
  // The server has not yet detected the loss of the previous connection.
  "already-connected",
];
/**
 * The worker hung or failed; the next connection starts a new worker. If a worker cannot be started, `connect` fails.
 */
const WORKER_LOST = "worker-unavailable";

/**
 * Close codes of a relay or proxy that may accept a client later. It is shutting down, restarting or full, lost the
 * connection or its server, received nothing, or the address reached its limit.
 */
const TRANSIENT_RELAY_CODES: readonly unknown[] = [1001, 1006, 1011, 1012, 1013, 1014, 4408, 4429];

/**
 * Returns true if a retry may succeed after an error of `connect` or the close of a connection, for example because
 * the relay was full or the worker failed. Returns false if the client was refused, was disconnected by the server or
 * by the operator of the relay, or closed the connection itself.
 */
export function isTransient(cause: unknown): boolean {
  const { code, relayCode } = Object(cause) as { code?: unknown; relayCode?: unknown };
  if (code === "relay-closed") {
    // Without a code, the relay was reachable but had forgotten the flow, for example after a restart.
    return relayCode === undefined || TRANSIENT_RELAY_CODES.includes(relayCode);
  }
  if (code === WORKER_LOST) {
    return !(cause instanceof Error);
  }
  return TRANSIENT_CODES.includes(code);
}
