/** The page that a connection belongs to. */

/**
 * Firefox interrupts what a page runs while it is closed, once and within so many milliseconds: the handler that runs then ends, and the
 * next one is called.
 */
const INTERRUPT_MS = 20;

/** What is called when the page is left, and whether that must not be interrupted. */
const leaving = new Map<() => void, () => boolean>();

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
    // Each is added once. The first one loses nothing by being interrupted, and the last one goes on where another was.
    [waitForInterrupt, leave, STILL].forEach((listener) => addEventListener("pagehide", listener));
  }
  return () => leaving.delete(callback);
}

function waitForInterrupt(): void {
  const end = performance.now() + INTERRUPT_MS;
  while ([...leaving.values()].some((isFragile) => isFragile()) && performance.now() < end);
}

const STILL = { handleEvent: leave };

function leave(): void {
  leaving.forEach((_, callback) => callback());
}

/** How the connections of a page end that is left. */
export const PAGE_LEFT = { code: "page-left", reason: "the page was left" } as const;
