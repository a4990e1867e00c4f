// The script of the worker in a thread of Node, which a test can end at any time.

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

/** The parts of a Web Worker that the package needs. It ends with the test. */
export function startThread(context) {
  const thread = new Thread(SCRIPT, { eval: true });
  context.after(() => thread.terminate());
  return {
    addEventListener: (type, listener) => thread.on(type, (data) => listener(type === "message" ? { data } : data)),
    postMessage: (message, transfer) => thread.postMessage(message, transfer),
    terminate: () => void thread.terminate(),
  };
}
