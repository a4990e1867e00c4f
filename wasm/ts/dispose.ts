/** What `await using` calls. */

/** What TypeScript and bundlers use where the platform does not have the symbol yet. */
export const ASYNC_DISPOSE: typeof Symbol.asyncDispose =
  (Symbol.asyncDispose as typeof Symbol.asyncDispose | undefined) ??
  (Symbol.for("Symbol.asyncDispose") as typeof Symbol.asyncDispose);
