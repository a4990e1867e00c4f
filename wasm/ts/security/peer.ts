/** Peers whose connection may be a secure one. */

import { RakwireError } from "../errors.js";
import type { Rust, RustPeer } from "../instance.js";
import type { Peer, PeerSettings } from "../peer.js";
import { createPeer } from "../raknet-peer.js";
import { HEADER } from "../record.js";

/** A peer that is not connected: secure if the settings want that, or plain. */
export function createSecurePeer(rust: Rust, settings: PeerSettings): Peer {
  const { security } = settings;
  return createPeer(security === undefined ? rust : { ...rust, raknet: secured(rust, security) }, settings);
}

/** A class of Rust whose peers are secure: each knows whom the server has to be when it has been created. */
function secured({ memory, raknet }: Rust, security: Uint8Array): RustPeer {
  if (raknet?.createSecure === undefined) {
    throw new RakwireError("bad-option", "this WebAssembly is without secure connections; take rakwire/secure.wasm");
  }
  const create = (...numbers: Parameters<RustPeer["create"]>): number => {
    const seed = crypto.getRandomValues(new BigUint64Array(4)) as unknown as [bigint, bigint, bigint, bigint];
    const peer = raknet.createSecure?.(...numbers, ...seed) ?? 0;
    if (peer !== 0 && !isTold(raknet, memory, peer, security)) {
      raknet.free(peer, 0);
      return 0;
    }
    return peer;
  };
  return { ...raknet, create };
}

function isTold(raknet: RustPeer, memory: WebAssembly.Memory, peer: number, security: Uint8Array): boolean {
  const at = raknet.reserve(peer, security.length);
  if (at === 0) {
    return false;
  }
  new Uint8Array(memory.buffer).set(security, at + HEADER);
  return raknet.secure?.(peer, security.length) === 1;
}
