// Timers that can be stopped.

/** Replaces the timers of a program or a page. Timers that become due between `stop` and `go` never fire. */
export function stoppableTimers() {
  const { setTimeout } = globalThis;
  let isStopped = false;
  globalThis.setTimeout = (callback, ms, ...given) => setTimeout(() => void (isStopped || callback(...given)), ms);
  /** Returns the outcome of a promise while all timers are stopped. */
  const outcome = (promise) => {
    let timer;
    const late = new Promise((resolve) => (timer = setTimeout(resolve, 30_000, { code: "the promise waits for a timer" })));
    return Promise.race([promise, late]).finally(() => clearTimeout(timer));
  };
  return {
    outcome,
    stop: () => (isStopped = true),
    go: () => (isStopped = false),
    restore: () => (globalThis.setTimeout = setTimeout),
  };
}
