/** The events that a connection dispatches. */

import type { CloseInfo, Message, Progress, RelayDrops } from "./types.js";

/** `message`: a message arrived. */
export interface MessageArrivedEvent extends Event {
  readonly message: Message;
}

/** `progress`: progress of a large message, sent or received. */
export interface ProgressMadeEvent extends Event {
  readonly progress: Progress;
}

/** `mtu`: the path carries less than the peers agreed on. New datagrams have at most this MTU, headers of 28 bytes included. */
export interface MtuChangedEvent extends Event {
  readonly mtu: number;
}

/** `relaydrops`: the relay has dropped datagrams, so that fewer or smaller messages would get through better. */
export interface RelayDropsEvent extends Event {
  readonly drops: RelayDrops;
}

/**
 * `draining`: the relay is about to end, and ends the connection after `leftMs` milliseconds at the latest. It accepts no other
 * connection meanwhile. The relay says so up to three times by each way to it that the connection has: a `leftMs` of 0 is the last moment.
 */
export interface RelayDrainingEvent extends Event {
  readonly leftMs: number;
}

/** `close`: the connection has ended. */
export interface ClosedEvent extends Event {
  readonly info: CloseInfo;
}

/**
 * `interrupted`: the relay was lost and is sought again; messages wait. `resumed`: the connection goes on where it was. A
 * connection that cannot go on dispatches `close` instead.
 */
export type InterruptionEvent = Event;

/** The events by their names. */
interface Events {
  message: MessageArrivedEvent;
  progress: ProgressMadeEvent;
  mtu: MtuChangedEvent;
  relaydrops: RelayDropsEvent;
  draining: RelayDrainingEvent;
  close: ClosedEvent;
  interrupted: InterruptionEvent;
  resumed: InterruptionEvent;
}

/** An event with what it tells besides. */
export class ConnectionEvent<K extends keyof Events> extends Event {
  constructor(type: K, told: Omit<Events[K], keyof Event>) {
    super(type);
    Object.assign(this, told);
  }
}
