/** Plugins: they have messages of their own, which they exchange with their like at the server and applications never see. */

import { RakwireError } from "./errors.js";
import { report } from "./events.js";
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

/** Gets the messages of an id. */
type Take = (message: Message) => void;

/** Has the ids of a plugin that was detached: what its like still sends is for no application. */
const discard: Take = () => undefined;

/** Who has which id of each connection. */
const attached = /* @__PURE__ */ new WeakMap<Connection, Map<number, Take>>();

/**
 * Gives a plugin all messages of its ids, from the next microtask on: also those that arrived before and wait in the queue, and
 * later ones that arrive while nobody reads the others. Returns what detaches it; what comes for it then is discarded, until
 * another plugin has the id.
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
    throw new RakwireError("bad-option", `another plugin has the messages with the id ${taken}`);
  }
  attached.set(connection, plugins);
  let waiting: Message[] | undefined = [];
  const give = (message: Message): void => {
    // It may have been detached by an earlier message.
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
  // Whoever attaches it may first do what it needs to answer.
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

/** Takes what is queued for plugins, and everything that comes. */
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
