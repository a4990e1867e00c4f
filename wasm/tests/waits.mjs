// Counts pending waits, for tests that check that no listener remains.

import { WaitList } from "../dist/waits.js";

/**
 * Counts the pending waits in lists, and the reactions attached to the `closed` promise of a connection, until the end
 * of the test.
 */
export function watchWaits(t, connection) {
  const lists = new Set();
  const { add } = WaitList.prototype;
  t.mock.method(WaitList.prototype, "add", function (signal) {
    lists.add(this);
    return add.call(this, signal);
  });
  let reactions = 0;
  const { then } = connection.closed;
  connection.closed.then = function (...callbacks) {
    reactions += 1;
    return then.apply(this, callbacks);
  };
  return () => [...lists].reduce((sum, list) => sum + list.all().length, reactions);
}

/** Returns a signal that counts its listeners, and a function that aborts it. */
export function watchedSignal() {
  const controller = new AbortController();
  const { signal } = controller;
  const listeners = new Set();
  for (const [method, change] of [["addEventListener", "add"], ["removeEventListener", "delete"]]) {
    const original = signal[method];
    signal[method] = function (type, listener, ...rest) {
      listeners[change](listener);
      return original.call(this, type, listener, ...rest);
    };
  }
  return { signal, abort: (reason) => controller.abort(reason), count: () => listeners.size };
}
