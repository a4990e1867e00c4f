/** Loads the WebAssembly once for all connections. */

import init, { GameProtocolPeer, RakNetPeer } from "../pkg/rakwire.js";
import { RakwireError } from "./errors.js";
import type { WasmSource } from "./types.js";

/** A peer of either protocol. */
export type Peer = RakNetPeer | GameProtocolPeer;
/** The classes that Rust exports. */
export interface PeerClasses {
  RakNetPeer: typeof RakNetPeer;
  GameProtocolPeer: typeof GameProtocolPeer;
}

let defaultSource: () => WasmSource | undefined | Promise<WasmSource> = () => undefined;
let loading: Promise<void> | undefined;

/** Sets where the WebAssembly comes from unless a caller specifies it. */
export function setDefaultSource(source: () => Promise<WasmSource>): void {
  defaultSource = source;
}

async function load(source: WasmSource | undefined): Promise<void> {
  const chosen = source ?? (await defaultSource());
  // The generated code refers to the file next to it in a form that bundlers recognise.
  await (chosen === undefined ? init() : init({ module_or_path: chosen }));
}

/** Loads the WebAssembly and returns the classes that Rust exports. */
export async function loadPeers(source: WasmSource | undefined): Promise<PeerClasses> {
  loading ??= load(source);
  try {
    await loading;
  } catch (cause) {
    loading = undefined;
    const message = cause instanceof Error ? cause.message : String(cause);
    throw new RakwireError("wasm-unavailable", `the WebAssembly cannot be loaded: ${message}`, { cause });
  }
  return { RakNetPeer, GameProtocolPeer };
}
