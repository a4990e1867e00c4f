/** Plugins: each receives the messages with its own ids instead of the application. */

import { RakwireError } from "./errors.js";
import { report } from "./events.js";
import type { ReceiveQueue } from "./receive-queue.js";
import type { Connection, Message } from "./types.js";

export { RakwireError } from "./errors.js";
export type { ErrorCode, RakwireErrorOptions } from "./errors.js";

/** Receives the messages with its ids instead of the application. */
export interface Plugin {
  /**
   * The first bytes of its messages. In the Game Protocol, which has no message ids, the first byte counts as the id.
   */
  readonly ids: readonly number[];
  /** Called with each message, in the order of arrival. */
  onMessage(message: Message): void;
}

/** Handles the messages of an id. */
type Take = (message: Message) => void;

/** Handles the ids of a detached plugin, so that late messages do not reach the application. */
const discard: Take = () => undefined;

/** The handler of each id of each connection. */
const attached = /* @__PURE__ */ new WeakMap<Connection, Map<number, Take>>();

/**
 * Delivers all messages with the plugin's ids to the plugin, starting in the next microtask. This includes messages
 * that are already queued, even behind unread messages of the application. Returns a function that detaches the plugin.
 * Messages that arrive later are discarded until another plugin takes the id.
 *
 * @throws RakwireError with the code `bad-option` if another plugin of the connection has one of the ids.
 */
export function attach(connection: Connection, plugin: Plugin): () => void {
  const { queue } = connection as { queue?: ReceiveQueue };
  if (queue === undefined) {
    throw new RakwireError("bad-option", "plugins need a connection of this package");
  }
  const plugins = attached.get(connection) ?? new Map<number, Take>();
  const ids = [...plugin.ids];
  const taken = ids.find((id) => (plugins.get(id) ?? discard) !== discard);
  if (taken !== undefined) {
    throw new RakwireError("bad-option", `another plugin has the id ${taken}; detach it first`);
  }
  attached.set(connection, plugins);
  let waiting: Message[] | undefined = [];
  const give = (message: Message): void => {
    // The plugin may have been detached while handling an earlier message.
    if (plugins.get(message.bytes[0] as number) !== take) {
      return;
    }
    try {
      plugin.onMessage(message);
    } catch (error) {
      report(error);
    }
  };
  const take: Take = (message) => void (waiting?.push(message) ?? give(message));
  ids.forEach((id) => plugins.set(id, take));
  offer(queue, plugins);
  // Gives the caller time to finish its own setup.
  queueMicrotask(() => {
    const early = waiting;
    waiting = undefined;
    early?.forEach(give);
  });
  return () => {
    ids.filter((id) => plugins.get(id) === take).forEach((id) => plugins.set(id, discard));
    queue.hasPlugins = hasPlugins(plugins);
  };
}

function hasPlugins(plugins: Map<number, Take>): boolean {
  return [...plugins.values()].some((take) => take !== discard);
}

/** Removes queued messages of plugins, and then all that arrive later. */
function offer(queue: ReceiveQueue, plugins: Map<number, Take>): void {
  const queued = queue.drain();
  queue.taker = (message) => {
    const take = plugins.get(message.bytes[0] as number);
    take?.(message);
    return take !== undefined;
  };
  queue.hasPlugins = hasPlugins(plugins);
  queued.forEach((message) => queue.push(message));
  queue.onRoom();
}
