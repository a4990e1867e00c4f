/** Gives up after a time. */

import type { ErrorCode } from "./errors.js";
import { RakwireError } from "./errors.js";
import { readTimeout } from "./options.js";

/**
 * Does `work`, which gets a signal that is aborted with `signal` or after `timeoutMs`.
 *
 * @throws RakwireError with `code` and `message` after that time.
 */
export async function withDeadline<T>(
  signal: AbortSignal | undefined,
  timeoutMs: number,
  [code, message]: [ErrorCode, string],
  work: (deadline: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  const timeout = controller.signal;
  // Not that of `AbortSignal.timeout`, for which a process does not stay alive.
  const timer = setTimeout(() => controller.abort(), readTimeout(timeoutMs));
  const deadline = signal === undefined ? timeout : AbortSignal.any([signal, timeout]);
  try {
    return await work(deadline);
  } catch (error) {
    throw timeout.aborted && error === timeout.reason ? new RakwireError(code, message) : error;
  } finally {
    clearTimeout(timer);
  }
}
