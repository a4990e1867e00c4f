/** What runs the sessions of a page in another thread. */

import type { SessionLike, SessionOwner, SessionSettings } from "./session.js";

/** A Web Worker for the sessions of connections; `rakwire/worker` has one. */
export interface PeerWorker {
  /** @internal */
  open(module: WebAssembly.Module, settings: SessionSettings, owner: SessionOwner): SessionLike;
}
