/** The page that a connection belongs to. */

/**
 * Calls back when the page is left: closed, reloaded, navigated away from, or kept in case of a return. What is returned ends that.
 * A worker, and a runtime without pages, has no page to leave.
 */
export function onPageLeft(callback: () => void): () => void {
  if (typeof document === "undefined") {
    return () => undefined;
  }
  globalThis.addEventListener("pagehide", callback);
  return () => globalThis.removeEventListener("pagehide", callback);
}

/** How the connections of a page end that is left. */
export const PAGE_LEFT = { code: "page-left", reason: "the page was left" } as const;
