/** A connection that a client has opened. */

import { PeerConnection } from "../connection.js";
import type { SessionLike, SessionOwner } from "../session.js";
import type { ServerConnection } from "./types.js";

export class AcceptedConnection extends PeerConnection implements ServerConnection {
  readonly remoteAddress: string;
  readonly clientGuid: bigint;

  constructor(open: (owner: SessionOwner) => SessionLike, client: { remoteAddress: string; clientGuid: bigint }) {
    super(open);
    this.remoteAddress = client.remoteAddress;
    this.clientGuid = client.clientGuid;
  }
}
