/** Peers of both protocols, and what only RakNet tells of a server. */

import { readAddresses } from "./addresses.js";
import type { Rust } from "./instance.js";
import type { Peer, PeerSettings } from "./peer.js";
import { RustPeerHandle } from "./peer.js";

/** A peer that is not connected. */
export function createPeer(rust: Rust, settings: PeerSettings): Peer {
  return new RakNetPeerHandle(rust, settings);
}

class RakNetPeerHandle extends RustPeerHandle {
  override internalAddresses(): string[] {
    const bytes = this.told("internalAddresses");
    return bytes ? readAddresses(bytes) : [];
  }

  override get serverGuid(): bigint | undefined {
    const bytes = this.told("serverGuid");
    return bytes && new DataView(bytes.buffer).getBigUint64(0, true);
  }

  override get securePeer(): Uint8Array | undefined {
    return this.told("securePeer");
  }
}
