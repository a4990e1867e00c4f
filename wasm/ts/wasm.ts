/** Loads the WebAssembly of an entry once for all its connections. */

import { RakwireError } from "./errors.js";
import type { Classes, Rust } from "./rust.js";
import { instantiate } from "./rust.js";
import type { WasmSource } from "./types.js";

/** Decompresses gzip data in base64. */
export async function inflate(base64: string): Promise<ArrayBuffer> {
  const packed = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(unpacked).arrayBuffer();
}

/** The exports of Rust, and the compiled module for use in a worker. */
export interface Loaded extends Rust {
  module: WebAssembly.Module;
}

/** Reads files from URLs that `fetch` does not support, as in Node. Returns `undefined` for other URLs. */
let readFile: ((url: URL) => Promise<BufferSource>) | undefined;

export function setFileReader(reader: (url: URL) => Promise<BufferSource>): void {
  readFile = reader;
}

/** Error messages of browsers when the content security policy of the page forbids WebAssembly. */
const BY_POLICY = /content security policy|unsafe-eval|\bCSP\b/i;

/** The WebAssembly of an entry. */
export class Wasm {
  readonly #classes: Classes;
  readonly #embedded: (() => Promise<WasmSource>) | undefined;
  #loading: Promise<Loaded> | undefined;

  /** `embedded` is the default source. */
  constructor(classes: Classes, embedded?: () => Promise<WasmSource>) {
    this.#classes = classes;
    this.#embedded = embedded;
  }

  /** Loads the WebAssembly on the first call. Later calls ignore their `source`. */
  async load(source: WasmSource | Promise<WasmSource> | undefined): Promise<Loaded> {
    this.#loading ??= this.#load(source);
    try {
      return await this.#loading;
    } catch (cause) {
      this.#loading = undefined;
      const message = cause instanceof Error ? cause.message : String(cause);
      const remedy = BY_POLICY.test(message) ? "; the content security policy of the page needs 'wasm-unsafe-eval' in script-src" : "";
      throw new RakwireError("wasm-unavailable", `the WebAssembly cannot be loaded: ${message}${remedy}`, { cause });
    }
  }

  async #load(source: WasmSource | Promise<WasmSource> | undefined): Promise<Loaded> {
    const chosen = (await source) ?? (await this.#embedded?.());
    if (chosen === undefined) {
      throw new Error("pass its URL or bytes to init, or as the option wasm");
    }
    const module = await compile(chosen);
    return { module, ...instantiate(module, this.#classes) };
  }
}

async function compile(source: WasmSource): Promise<WebAssembly.Module> {
  if (source instanceof WebAssembly.Module) {
    return source;
  }
  if (typeof source === "string" || source instanceof URL) {
    const url = new URL(source, globalThis.location?.href);
    return url.protocol === "file:" && readFile !== undefined
      ? WebAssembly.compile(await readFile(url))
      : compile(await fetch(url));
  }
  if ("arrayBuffer" in source) {
    if (!source.ok) {
      throw new Error(`${source.url} has status ${source.status}`);
    }
    // `compileStreaming` would refuse servers that send another content type.
    return WebAssembly.compile(await source.arrayBuffer());
  }
  return WebAssembly.compile(source);
}
