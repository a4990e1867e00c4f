/** Plugins: they have messages of their own, which they exchange with their like at the server and applications never see. */

import { RakwireError } from "./errors.js";
import { report } from "./plugin/report.js";
import type { ReceiveQueue } from "./receive-queue.js";
import type { Connection, Message } from "./types.js";

export { RakwireError } from "./errors.js";
export type { ErrorCode, RakwireErrorOptions } from "./errors.js";

/** What gets the messages of its ids in place of the application. */
export interface Plugin {
  /** The first bytes of its messages. In the Game Protocol, which has no ids, the first byte is the id here too. */
  readonly ids: readonly number[];
  /** Gets each message once, in the order of their arrival. */
  onMessage(message: Message): void;
}

/** The plugins of each connection, by their ids. */
const attached = /* @__PURE__ */ new WeakMap<Connection, Map<number, (message: Message) => void>>();

/**
 * Gives a plugin all messages of its ids, from the next microtask on: also those that arrived before and wait in the queue, and
 * later ones that arrive while nobody reads the others. Returns what detaches it.
 *
 * @throws RakwireError with the code `bad-option` if another plugin of the connection has one of the ids.
 */
export function attach(connection: Connection, plugin: Plugin): () => void {
  const plugins = pluginsOf(connection);
  const ids = [...plugin.ids];
  const taken = ids.find((id) => plugins.has(id));
  if (taken !== undefined) {
    throw new RakwireError("bad-option", `another plugin has the messages with the id ${taken}`);
  }
  let waiting: Message[] | undefined = [];
  const give = (message: Message): void => {
    try {
      plugin.onMessage(message);
    } catch (error) {
      report(error);
    }
  };
  const take = (message: Message): void => void (waiting?.push(message) ?? give(message));
  ids.forEach((id) => plugins.set(id, take));
  offer(connection, plugins);
  // Whoever attaches it may first do what it needs to answer.
  queueMicrotask(() => {
    const early = waiting;
    waiting = undefined;
    early?.forEach(give);
  });
  return () => {
    waiting &&= [];
    ids.filter((id) => plugins.get(id) === take).forEach((id) => plugins.delete(id));
  };
}

function pluginsOf(connection: Connection): Map<number, (message: Message) => void> {
  const plugins = attached.get(connection) ?? new Map<number, (message: Message) => void>();
  attached.set(connection, plugins);
  return plugins;
}

/** Takes what is queued for plugins, and everything that comes. */
function offer(connection: Connection, plugins: Map<number, (message: Message) => void>): void {
  const { queue } = connection as { queue?: ReceiveQueue };
  if (queue === undefined) {
    throw new RakwireError("bad-option", "plugins need a connection of this package");
  }
  const queued = queue.drain();
  queue.taker = (message) => {
    const take = plugins.get(message.bytes[0] as number);
    take?.(message);
    return take !== undefined;
  };
  queued.forEach((message) => queue.push(message));
  queue.onRoom();
}
