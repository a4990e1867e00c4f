/** The secure connection of an application. */

import { CheckedConnection } from "../checked-connection.js";
import { RakwireError } from "../errors.js";
import { KEY, PREFIXES, toText } from "./text.js";
import type { KnownServer, SecureConnection } from "./types.js";

export class SecurePeerConnection extends CheckedConnection implements SecureConnection {
  /** Set by the constructor of the base at the earliest, hence without a value here. */
  declare securePeer: KnownServer;

  protected override onOpen(securePeer: Uint8Array | undefined): void {
    if (securePeer === undefined) {
      throw new RakwireError("internal", "the connection is not secure");
    }
    const key = toText(PREFIXES.publicKey, securePeer.subarray(0, KEY));
    const next = securePeer.subarray(KEY);
    this.securePeer = next.length === 0 ? { key } : { key, next: toText(PREFIXES.keyHash, next) };
    super.onOpen(securePeer);
  }
}
