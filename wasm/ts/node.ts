/** The same as index.ts for Node, which cannot fetch the WebAssembly from a file. */

import { readFile } from "node:fs/promises";

import { useByDefault } from "./wasm.js";

useByDefault(() => readFile(new URL("../pkg/rakwire_bg.wasm", import.meta.url)));

export * from "./index.js";
