/** The page that a connection belongs to. */

/**
 * How long a page stays for its browser. Firefox interrupts what a page runs while it is closed, once and within that time: the handler
 * that runs then ends, and the next one is called. Chromium drops with a session what it has taken of it and not sent yet.
 */
const STAY_MS = 20;

/** What is called when the page is left, and whether that must not be interrupted. */
const leaving = new Map<() => void, () => boolean>();
/** What is called once at the end of the time that a page stays which is left: what was sent before has left by then. */
export const atPageEnd: (() => void)[] = [];

/** Whether there is a page. A worker has none to leave, nor has a runtime without pages. */
export function hasPage(): boolean {
  return typeof document !== "undefined";
}

/**
 * Calls back when the page is left: closed, reloaded, navigated away from, or kept in case of a return. What is returned ends that. The
 * callback may be interrupted and is called again then. `isFragile` says whether that would lose what is sent.
 */
export function onPageLeft(callback: () => void, isFragile: () => boolean): () => void {
  if (hasPage()) {
    leaving.set(callback, isFragile);
    // Each is added once. The first one loses nothing by being interrupted, and the third one goes on where another was.
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

/** What fails keeps no other connection. */
function attempt(callback: () => void): void {
  try {
    callback();
  } catch (error) {
    console.error("rakwire:", error);
  }
}

/** How the connections of a page end that is left. */
export const PAGE_LEFT = { code: "page-left", reason: "the page was left" } as const;
