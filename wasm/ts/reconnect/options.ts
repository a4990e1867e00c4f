/** The options of repeated connections. */

import { RakwireError } from "../errors.js";
import { checkNames, MAX_TIMEOUT_MS, readInteger } from "../options.js";
import { isTransient } from "./transient.js";

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
export type ReconnectSettings = Required<ReconnectOptions>;

const OPTIONS = ["signal", "maxAttempts", "minDelayMs", "maxDelayMs", "shouldRetry", "onRetry"];

/** The checked options. */
export function readReconnect(options: ReconnectOptions): ReconnectSettings {
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
