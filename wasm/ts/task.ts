/** Goes on after the tasks that wait already. */

/** Calls back in a task of its own. A timer would do so later: those of a hidden tab fire once a second, or once a minute. */
export function afterTask(callback: () => void): void {
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => {
    port1.close();
    callback();
  };
  port2.postMessage(0);
}
