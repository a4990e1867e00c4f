/** What runs the sessions of a page in another thread. */

import type { SessionLike, SessionOwner, SessionSettings } from "./session.js";

/** A Web Worker for the sessions of connections; `rakwire/worker` has one. */
export interface PeerWorker extends AsyncDisposable {
  /**
   * Closes all connections of the worker, each once earlier messages have arrived or after 10 s, and then ends it. If it does
   * nothing for 15 s, it is ended all the same, and its connections with it. A later connection starts another
   * one.
   */
  close(): Promise<void>;

  /** Ends the worker, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;

  /** @internal */
  open(module: WebAssembly.Module, settings: SessionSettings, owner: SessionOwner): SessionLike;
}
