/** Connections whose protocol and transport run in a Web Worker. */

import source from "../pkg/worker-source.js";
import type { PeerWorker } from "./peer-worker.js";
import { WorkerThread } from "./worker/thread.js";

export type { PeerWorker } from "./peer-worker.js";

/**
 * A worker of its own for connections. `start` makes it from the file `rakwire/worker-script.js`, for pages whose content
 * security policy forbids workers from `blob:`.
 */
export function createWorker(start: () => Worker = startFromSource): PeerWorker {
  return new WorkerThread(start);
}

/** The worker of this page, which is started by the first connection with it. */
export const worker: PeerWorker = /* @__PURE__ */ createWorker();

function startFromSource(): Worker {
  const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
  const worker = new Worker(url);
  // Then it has been loaded, or never will be.
  ["message", "error"].forEach((type) => worker.addEventListener(type, () => URL.revokeObjectURL(url), { once: true }));
  return worker;
}
