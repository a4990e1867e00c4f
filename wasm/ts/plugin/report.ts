/** What an application's function throws. */

/** Whether `reportError` ends the process, as an error that nothing has caught: in Deno it does. */
const isFatal = "Deno" in globalThis;

/**
 * Tells of an error of an application's function, and goes on: in a page as of one of a listener. What one message causes in a
 * server is not to end it for all others, so that other runtimes tell of it on the console alone.
 */
export function report(error: unknown): void {
  if (typeof reportError === "function" && !isFatal) {
    reportError(error);
  } else {
    console.error("rakwire: a function of the application has thrown", error);
  }
}

/** Calls a function of the application, and reports what it throws, or what the promise rejects with that it returns. */
export function guarded<A extends unknown[]>(call: (...given: A) => unknown, ...given: A): void {
  try {
    const result = call(...given);
    if (result instanceof Promise) {
      result.catch(report);
    }
  } catch (error) {
    report(error);
  }
}
