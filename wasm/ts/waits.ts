/** Abortable waits, timers, and the symbol of `await using`. */

/** Options of calls that wait. */
export interface WaitOptions {
  /** Aborting it ends the wait, which then rejects with the reason of the signal. The operation itself continues. */
  signal?: AbortSignal | undefined;
}

/** A promise with its settling functions. */
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

/** A pending wait. Settling it removes it from its list. */
export interface Wait<T> {
  readonly promise: Promise<T>;
  resolve(value: T): void;
  reject(reason: unknown): void;
}

/** Pending waits for the same event, in order of arrival. */
export class WaitList<T> {
  readonly #waits = new Set<Wait<T>>();

  get first(): Wait<T> | undefined {
    return this.#waits.values().next().value;
  }

  /** Adds a wait that ends when `signal` is aborted. */
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

  /** Returns a copy of the pending waits, because settling one changes the list. */
  all(): Wait<T>[] {
    return [...this.#waits];
  }
}

/** Settles like `work`, or rejects with the reason of `signal` if that is aborted first. */
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

/** The timers of the platform or of a test, in milliseconds. */
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

/** The symbol that TypeScript and bundlers use on platforms without `Symbol.asyncDispose`. */
export const ASYNC_DISPOSE: typeof Symbol.asyncDispose =
  (Symbol.asyncDispose as typeof Symbol.asyncDispose | undefined) ??
  (Symbol.for("Symbol.asyncDispose") as typeof Symbol.asyncDispose);
