// Prints sizes of the built package as JSON:
//
// - each entry: the WebAssembly, and the glue, which is all JavaScript of the entry in one minified file; both in bytes
//   after gzip at its highest level
// - the parts of the glue of the smallest entry, minified and before compression
// - the download size of a page; with `--others` also with other libraries, which tests/bundlers installs

import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

import { build } from "esbuild";

import { CLIENTS, OWN_CLIENTS, loadedBytes } from "./clients.mjs";

const HERE = dirname(fileURLToPath(import.meta.url));
/** The module of each entry, and the name of its WebAssembly, embedded or separate. */
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

/** The entry with the glue that is divided into {@link PARTS}. */
const SMALLEST = "game-protocol";
const PARTS = {
  "data channels": /^transport\/webrtc$/,
  "WebTransport": /^transport\/webtransport$/,
  "the WebSocket": /^transport\/websocket$/,
  "the permission for a relay in the local network, and the loopback addresses of `localhost`": /^transport\/local-network$/,
  "the race of transports, their resumption, and what a relay says of itself": /^transport\//,
  "a session: its loop, what waits for it, what leaves with the page": /^(loop|page|session|waits)$/,
  "the WebAssembly: how it is loaded, started and called, and what its numbers mean": /^(peer|pkg|rust|wasm)$/,
  "options, the errors about them, and messages to send": /^(errors|options|sending)$/,
  "the connection of an application: how it is opened, its queue, listeners and events": /./,
};

const gzip = (bytes) => gzipSync(bytes, { level: 9 }).length;

/** Excludes the WebAssembly. */
const withoutWasm = {
  name: "without-wasm",
  setup({ onLoad }) {
    onLoad({ filter: /[\\/]pkg[\\/](rakwire|raknet|game-protocol|secure|server)\.js$/ }, () => ({ contents: 'export default "";' }));
  },
};

/** Bundles a module to one file, and returns the size of each of its own modules in it. */
async function bundleOf(module, plugins) {
  const options = { entryPoints: [join(HERE, "dist", `${module}.js`)], bundle: true, minify: true, format: "esm", target: "es2022", external: ["node:*"], write: false };
  const { outputFiles, metafile } = await build({ ...options, plugins, metafile: true, absWorkingDir: HERE });
  return { contents: outputFiles[0].contents, inputs: Object.values(metafile.outputs)[0].inputs };
}

const bundle = async (module, plugins) => (await bundleOf(module, plugins)).contents;

/** Returns the size of each of `PARTS` in bytes. */
async function partsOf(module) {
  const parts = Object.fromEntries(Object.keys(PARTS).map((part) => [part, 0]));
  const { inputs } = await bundleOf(module, [withoutWasm]);
  for (const [path, { bytesInOutput }] of Object.entries(inputs)) {
    const name = path.replace(/^dist\/(.*)\.js$/, "$1").replace(/^pkg\/.*/, "pkg");
    const [part] = Object.entries(PARTS).find(([, names]) => names.test(name));
    parts[part] += bytesInOutput;
  }
  return parts;
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
console.log(JSON.stringify({ entries: sizes, parts: await partsOf(SMALLEST), clients }));
