/** The events that a connection dispatches. */

import type { CloseInfo, Message } from "./types.js";

/** `message`: a message arrived. */
export class MessageArrivedEvent extends Event {
  readonly message: Message;

  constructor(message: Message) {
    super("message");
    this.message = message;
  }
}

/** `close`: the connection is over. */
export class ClosedEvent extends Event {
  readonly info: CloseInfo;

  constructor(info: CloseInfo) {
    super("close");
    this.info = info;
  }
}
