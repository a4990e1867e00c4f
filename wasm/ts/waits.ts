/** Waits for something that may not come, which a signal ends; timers; and the method that `await using` calls. */

/** How a wait may be ended. */
export interface WaitOptions {
  /** Ends the wait, which then rejects with the reason of the signal. What was waited for goes on by itself. */
  signal?: AbortSignal | undefined;
}

/** A promise that others settle. */
export interface Deferred<T> {
  promise: Promise<T>;
  resolve: (value: T) => void;
  reject: (error: unknown) => void;
}

export function deferred<T>(): Deferred<T> {
  let resolve!: Deferred<T>["resolve"];
  let reject!: Deferred<T>["reject"];
  const promise = new Promise<T>((onResolve, onReject) => {
    resolve = onResolve;
    reject = onReject;
  });
  return { promise, resolve, reject };
}

/** One that waits. Settling it takes it out of its list. */
export interface Wait<T> {
  readonly promise: Promise<T>;
  resolve(value: T): void;
  reject(reason: unknown): void;
}

/** Those that wait for the same thing, the one that came first at the front. */
export class WaitList<T> {
  readonly #waits = new Set<Wait<T>>();

  get first(): Wait<T> | undefined {
    return this.#waits.values().next().value;
  }

  /** Adds one that waits until `signal` is aborted. */
  add(signal: AbortSignal | undefined): Wait<T> {
    const { promise, resolve, reject } = deferred<T>();
    const onAbort = (): void => wait.reject(signal?.reason);
    const leave = (): void => {
      this.#waits.delete(wait);
      signal?.removeEventListener("abort", onAbort);
    };
    const wait: Wait<T> = {
      promise,
      resolve(value) {
        leave();
        resolve(value);
      },
      reject(reason) {
        leave();
        reject(reason);
      },
    };
    this.#waits.add(wait);
    signal?.addEventListener("abort", onAbort);
    if (signal?.aborted === true) {
      onAbort();
    }
    return wait;
  }

  /** All that wait now; more may come and some leave meanwhile. */
  all(): Wait<T>[] {
    return [...this.#waits];
  }
}

/** Settles as `work` does, or rejects with the reason of `signal` if that is aborted first. */
export async function beforeAbort<T>(signal: AbortSignal | undefined, work: Promise<T>): Promise<T> {
  if (signal === undefined) {
    return work;
  }
  const aborted = new WaitList<never>().add(signal);
  try {
    return await Promise.race([aborted.promise, work]);
  } finally {
    aborted.reject(undefined);
  }
}

/** The timers of the platform, or of a test; milliseconds. */
export interface Timers {
  now(): number;
  set(callback: () => void, ms: number): unknown;
  clear(timer: unknown): void;
}

export const PLATFORM_TIMERS: Timers = {
  now: () => performance.now(),
  set: (callback, ms) => setTimeout(callback, ms),
  clear: (timer) => clearTimeout(timer as ReturnType<typeof setTimeout>),
};

/** What TypeScript and bundlers use where the platform does not have the symbol yet. */
export const ASYNC_DISPOSE: typeof Symbol.asyncDispose =
  (Symbol.asyncDispose as typeof Symbol.asyncDispose | undefined) ??
  (Symbol.for("Symbol.asyncDispose") as typeof Symbol.asyncDispose);
