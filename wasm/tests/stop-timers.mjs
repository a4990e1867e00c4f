// Timers that can be stopped.

/**
 * Replaces the timers of a program or a page: from `stop` until `go` none fires, and those that become due meanwhile
 * never do.
 */
export function stoppableTimers() {
  const { setTimeout } = globalThis;
  let isStopped = false;
  globalThis.setTimeout = (callback, ms, ...given) => setTimeout(() => void (isStopped || callback(...given)), ms);
  /** Returns the outcome of a promise without a timer. */
  const outcome = (promise) => {
    let timer;
    const late = new Promise((resolve) => (timer = setTimeout(resolve, 30_000, { code: "it waits for a timer" })));
    return Promise.race([promise, late]).finally(() => clearTimeout(timer));
  };
  return {
    outcome,
    stop: () => (isStopped = true),
    go: () => (isStopped = false),
    restore: () => (globalThis.setTimeout = setTimeout),
  };
}
