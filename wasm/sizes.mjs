// Prints as JSON how large each entry of the built package is for those who use it: the WebAssembly, and the glue, which is
// all JavaScript of the entry in one minified file; both compressed with gzip at its highest level, in bytes. Then what a page
// loads for it, and with `--others` for the clients of others too, which are among the packages of tests/bundlers.

import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

import { build } from "esbuild";

import { CLIENTS, OWN_CLIENTS, loadedBytes } from "./clients.mjs";

const HERE = dirname(fileURLToPath(import.meta.url));
/** The module of each entry, and the name of the WebAssembly that is inside of it or goes with it. */
const ENTRIES = {
  ".": ["index", "rakwire"],
  "./raknet": ["raknet", "raknet"],
  "./game-protocol": ["game-protocol", "game-protocol"],
  "./secure": ["secure", "secure"],
  "./server": ["server", "server"],
  "./slim": ["slim", "rakwire"],
  "./ping": ["ping"],
  "./worker": ["worker"],
  "./plugin": ["plugin"],
  "./calls": ["calls"],
  "./files": ["files"],
  "./ready": ["ready"],
  "./reconnect": ["reconnect"],
  "./replication": ["replication"],
  "./voice": ["voice"],
  "./codec": ["codec/index"],
};

const gzip = (bytes) => gzipSync(bytes, { level: 9 }).length;

/** Leaves the WebAssembly out. */
const withoutWasm = {
  name: "without-wasm",
  setup({ onLoad }) {
    onLoad({ filter: /[\\/]pkg[\\/](rakwire|raknet|game-protocol|secure|server)\.js$/ }, () => ({ contents: 'export default "";' }));
  },
};

/** All JavaScript of a module in one file. */
async function bundle(module, plugins) {
  const options = { entryPoints: [join(HERE, "dist", `${module}.js`)], bundle: true, minify: true, format: "esm", target: "es2022", external: ["node:*"], write: false };
  const { outputFiles } = await build({ ...options, plugins });
  return outputFiles[0].contents;
}

const sizes = {};
for (const [entry, [module, name]] of Object.entries(ENTRIES)) {
  const wasm = name === undefined ? 0 : gzip(readFileSync(join(HERE, "pkg", `${name}.wasm`)));
  const glue = gzip(await bundle(module, [withoutWasm]));
  sizes[entry] = { wasm, glue, total: wasm + glue, file: gzip(await bundle(module, [])) };
}
const clients = {};
const measured = process.argv.includes("--others") ? CLIENTS : OWN_CLIENTS;
for (const [name, statement] of Object.entries(measured)) {
  clients[name] = await loadedBytes(statement);
}
console.log(JSON.stringify({ entries: sizes, clients }));
