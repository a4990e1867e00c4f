// Runs the worker's script in a thread of Node, which a test can terminate at any time.

import { Worker as Thread } from "node:worker_threads";

const url = (path) => JSON.stringify(new URL(path, import.meta.url).href);

const SCRIPT = `
  const { parentPort } = require("node:worker_threads");
  globalThis.self = {
    addEventListener: (type, listener) => parentPort.on(type, (data) => listener({ data })),
    postMessage: (message, transfer) => parentPort.postMessage(message, transfer),
  };
  import(${url("../dist/node/platform.js")}).then(() => import(${url("../dist/worker/script.js")}));
`;

/** Starts a thread with the Web Worker features that the package needs. It is terminated at the end of the test. */
export function startThread(context) {
  const thread = new Thread(SCRIPT, { eval: true });
  context.after(() => thread.terminate());
  return {
    addEventListener: (type, listener) => thread.on(type, (data) => listener(type === "message" ? { data } : data)),
    postMessage: (message, transfer) => thread.postMessage(message, transfer),
    terminate: () => void thread.terminate(),
  };
}
