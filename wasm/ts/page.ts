/** The lifetime of the page that a connection belongs to. */

/**
 * Milliseconds by which the unloading of a page is delayed for its browser. Firefox interrupts scripts of a closing
 * page once within that time: the running handler ends, and the next one is called. Chromium drops data that a
 * WebTransport session has accepted and not sent.
 */
const STAY_MS = 20;

/** Callbacks for when the page is left, and whether each must not be interrupted. */
const leaving = new Map<() => void, () => boolean>();
/** Called once at the end of the delay, when earlier data has been sent. */
export const atPageEnd: (() => void)[] = [];

/** Returns true if there is a page. Workers and runtimes without pages have none to leave. */
export function hasPage(): boolean {
  return typeof document !== "undefined";
}

/**
 * Calls back when the page is left: closed, reloaded, navigated away from, or put into the back/forward cache. Returns
 * a function that ends this. An interrupted callback is called again. `isFragile` returns true if an interruption would
 * lose sent data.
 */
export function onPageLeft(callback: () => void, isFragile: () => boolean): () => void {
  if (hasPage()) {
    leaving.set(callback, isFragile);
    // Each is added once. An interruption of the first one loses nothing, and the third one continues where another was
    // interrupted.
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

/** An error must not affect other connections. */
function attempt(callback: () => void): void {
  try {
    callback();
  } catch (error) {
    console.error("rakwire:", error);
  }
}

/** The close information of connections after the page was left. */
export const PAGE_LEFT = { code: "page-left", reason: "the page was left" } as const;
