/** The lifetime of the page that a connection belongs to. */

/**
 * The time in milliseconds by which unloading a page is delayed, for two reasons:
 *
 * - Firefox interrupts the scripts of a closing page once within this time. It aborts the running handler and calls the
 *   next one.
 * - Chromium drops data that a WebTransport session has accepted but not yet sent.
 */
const STAY_MS = 20;

/** Callbacks for leaving the page, each with a function that returns true if it must not be interrupted. */
const leaving = new Map<() => void, () => boolean>();
/** Called once at the end of the delay, when earlier data has been sent. */
export const atPageEnd: (() => void)[] = [];

/** Returns true if there is a page. Workers and server runtimes have none. */
export function hasPage(): boolean {
  return typeof document !== "undefined";
}

/**
 * Registers a callback for when the page is left: closed, reloaded, navigated away from, or put into the back/forward
 * cache. Returns a function that unregisters it. An interrupted callback is called again. `isFragile` returns true if
 * an interruption would lose sent data.
 */
export function onPageLeft(callback: () => void, isFragile: () => boolean): () => void {
  if (hasPage()) {
    leaving.set(callback, isFragile);
    // The browser may abort one of these listeners. Aborting the first loses nothing. If it aborts the second, the
    // third calls the callbacks again.
    [waitForInterrupt, leave, STILL, end].forEach((listener) => addEventListener("pagehide", listener));
  }
  return () => leaving.delete(callback);
}

function stay(isNeeded: boolean): void {
  const until = performance.now() + STAY_MS;
  while (isNeeded && performance.now() < until);
}

function waitForInterrupt(): void {
  stay([...leaving.values()].some((isFragile) => isFragile()));
}

function leave(): void {
  leaving.forEach((_, callback) => attempt(callback));
}

const STILL = { handleEvent: leave };

function end(): void {
  stay(atPageEnd.length > 0);
  atPageEnd.splice(0).forEach(attempt);
}

/** Runs a callback and logs its exception, which must not affect other connections. */
function attempt(callback: () => void): void {
  try {
    callback();
  } catch (error) {
    console.error("rakwire:", error);
  }
}

/** The close information of connections closed because the page was left. */
export const PAGE_LEFT = { code: "page-left", reason: "the page was left" } as const;
