/** A connection that a client has opened. */

import { CheckedConnection } from "../checked-connection.js";
import type { SessionLike, SessionOwner } from "../session.js";
import type { ServerConnection } from "./types.js";

/**
 * How many bytes of unread messages a connection of a server queues for a receipt or a plugin behind them: there are many, and
 * what a client sends is not to cost a server more than it is worth.
 */
const MAX_QUEUED_BYTES = 1024 * 1024;

export class AcceptedConnection extends CheckedConnection implements ServerConnection {
  readonly remoteAddress: string;
  readonly clientGuid: bigint;

  constructor(open: (owner: SessionOwner) => SessionLike, client: { remoteAddress: string; clientGuid: bigint }) {
    super(open, MAX_QUEUED_BYTES);
    this.remoteAddress = client.remoteAddress;
    this.clientGuid = client.clientGuid;
  }
}
