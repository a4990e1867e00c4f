/** Tells the platform of an error of an application's function, as one of a listener, and goes on. */
export function report(error: unknown): void {
  if (typeof reportError === "function") {
    reportError(error);
  } else {
    // Node has no such function.
    queueMicrotask(() => {
      throw error;
    });
  }
}
