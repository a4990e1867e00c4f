/** The same as index.ts for Node, whose `fetch` cannot load the WebAssembly from a file. */

import { readFile } from "node:fs/promises";

import { setDefaultSource } from "./wasm.js";

setDefaultSource(() => readFile(new URL("../pkg/rakwire_bg.wasm", import.meta.url)));

export * from "./index.js";
