/** Loads the WebAssembly once for all connections. */

import init, { GamePeer, Peer } from "../pkg/rakwire.js";
import { RakwireError } from "./errors.js";
import type { WasmSource } from "./types.js";

/** A peer of either protocol. */
export type AnyPeer = Peer | GamePeer;
/** The classes that Rust exports. */
export interface PeerClasses {
  Peer: typeof Peer;
  GamePeer: typeof GamePeer;
}

let byDefault: () => WasmSource | undefined | Promise<WasmSource> = () => undefined;
let loading: Promise<void> | undefined;

/** Sets where the WebAssembly comes from unless a caller says so. */
export function useByDefault(source: () => Promise<WasmSource>): void {
  byDefault = source;
}

async function load(source: WasmSource | undefined): Promise<void> {
  const found = source ?? (await byDefault());
  // The generated code knows the file beside it, in a form that bundlers know.
  await (found === undefined ? init() : init({ module_or_path: found }));
}

/** Makes the classes that Rust exports. */
export async function loadPeers(source: WasmSource | undefined): Promise<PeerClasses> {
  loading ??= load(source);
  try {
    await loading;
  } catch (cause) {
    loading = undefined;
    const words = cause instanceof Error ? cause.message : String(cause);
    throw new RakwireError("wasm-unavailable", `the WebAssembly cannot be loaded: ${words}`, { cause });
  }
  return { Peer, GamePeer };
}
