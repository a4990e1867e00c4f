/** Secure connections, their peers, and key pairs. */

import { CheckedConnection } from "../connection.js";
import { RakwireError } from "../errors.js";
import type { PeerSettings } from "../options.js";
import type { Peer } from "../peer.js";
import { createPeer } from "../peer.js";
import type { Rust, RustPeer } from "../rust.js";
import { HEADER, recordAt } from "../rust.js";
import type { KeyPair, KnownServer, SecureConnection } from "./keys.js";
import { KEY, PREFIXES, toText } from "./keys.js";

/** A secure connection of an application. */
export class SecurePeerConnection extends CheckedConnection implements SecureConnection {
  /** The base constructor may assign it, so it must have no initializer. */
  declare securePeer: KnownServer;

  protected override onConnected(securePeer: Uint8Array | undefined): void {
    if (securePeer === undefined) {
      throw new RakwireError("internal", "the connection is not secure");
    }
    const key = toText(PREFIXES.publicKey, securePeer.subarray(0, KEY));
    const next = securePeer.subarray(KEY);
    this.securePeer = next.length === 0 ? { key } : { key, next: toText(PREFIXES.keyHash, next) };
    super.onConnected(securePeer);
  }
}

/** Creates an unconnected peer: secure if the settings contain `security`, and otherwise not encrypted. */
export function createSecurePeer(rust: Rust, settings: PeerSettings): Peer {
  const { security } = settings;
  return createPeer(security === undefined ? rust : { ...rust, raknet: secured(rust, security) }, settings);
}

/** Wraps a class of Rust so that each new peer is secure and accepts only the expected server. */
function secured({ memory, raknet }: Rust, security: Uint8Array): RustPeer {
  if (raknet?.createSecure === undefined) {
    throw new RakwireError("bad-option", "this WebAssembly has no secure connections; use rakwire/secure.wasm");
  }
  const create = (...numbers: Parameters<RustPeer["create"]>): number => {
    const seed = crypto.getRandomValues(new BigUint64Array(4)) as unknown as [bigint, bigint, bigint, bigint];
    const peer = raknet.createSecure?.(...numbers, ...seed) ?? 0;
    if (peer !== 0 && !applySecurity(raknet, memory, peer, security)) {
      raknet.free(peer, 0);
      return 0;
    }
    return peer;
  };
  return { ...raknet, create };
}

function applySecurity(raknet: RustPeer, memory: WebAssembly.Memory, peer: number, security: Uint8Array): boolean {
  const at = raknet.reserve(peer, security.length);
  if (at === 0) {
    return false;
  }
  new Uint8Array(memory.buffer).set(security, at + HEADER);
  return raknet.secure?.(peer, security.length) === 1;
}

/** Creates a key pair. */
export function makeKeyPair({ memory, keyPair }: Rust): KeyPair {
  if (keyPair === undefined) {
    throw new RakwireError("bad-option", "this WebAssembly has no secure connections; use rakwire/secure.wasm");
  }
  const secret = crypto.getRandomValues(new Uint8Array(KEY));
  const view = new DataView(secret.buffer);
  const [a, b, c, d] = [0, 8, 16, 24].map((at) => view.getBigUint64(at, true)) as [bigint, bigint, bigint, bigint];
  const pair = keyPair.create(a, b, c, d);
  const publicKey = toText(PREFIXES.publicKey, recordAt(memory, keyPair.publicKey(pair)));
  keyPair.free(pair, 0);
  return { privateKey: toText(PREFIXES.privateKey, secret), publicKey };
}
