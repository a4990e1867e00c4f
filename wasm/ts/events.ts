/** The events that a connection dispatches. */

import type { CloseInfo, Message, Progress, RelayDrops } from "./types.js";

/** `message`: a message arrived. */
export class MessageArrivedEvent extends Event {
  readonly message: Message;

  constructor(message: Message) {
    super("message");
    this.message = message;
  }
}

/** `progress`: progress of a large message, sent or received. */
export class ProgressMadeEvent extends Event {
  readonly progress: Progress;

  constructor(progress: Progress) {
    super("progress");
    this.progress = progress;
  }
}

/** `relaydrops`: the relay has dropped datagrams, so that fewer or smaller messages would get through better. */
export class RelayDropsEvent extends Event {
  readonly drops: RelayDrops;

  constructor(drops: RelayDrops) {
    super("relaydrops");
    this.drops = drops;
  }
}

/** `close`: the connection has ended. */
export class ClosedEvent extends Event {
  readonly info: CloseInfo;

  constructor(info: CloseInfo) {
    super("close");
    this.info = info;
  }
}

/**
 * `interrupted`: the relay was lost and is sought again; messages wait. `resumed`: the connection goes on where it was. A
 * connection that cannot go on dispatches `close` instead.
 */
export class InterruptionEvent extends Event {
  constructor(type: "interrupted" | "resumed") {
    super(type);
  }
}
