// Builds the package: `node build.mjs`, or `npm run build`. It needs Rust with the target wasm32-unknown-unknown,
// wasm-bindgen of the version in Cargo.lock, and the npm packages of package-lock.json; with the same versions of these it
// leaves the same bytes.
//
// With `--typescript` it leaves the WebAssembly of the last build as it is. With `--entry NAME` it only makes the WebAssembly of one
// entry, and with `--server FOLDER`, for measurements, the one whose peers accept a connection, too.
//
// pkg/NAME.wasm, NAME.js  the WebAssembly of an entry, and the same as a text inside a module
// pkg/worker*.js          the script of the worker, as a file and as a text inside a module
// pkg/voice-worklet*.js   the same of the audio worklet of voice
// dist/                   what tsc makes of ts/

import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

import { build } from "esbuild";

const HERE = dirname(fileURLToPath(import.meta.url));
const TARGET = "wasm32-unknown-unknown";
/** The features of the crate for each WebAssembly. */
const ENTRIES = { "rakwire": "npm", "raknet": "npm-raknet", "game-protocol": "npm-game-protocol", "secure": "npm-secure", "server": "npm-raknet-server" };
/** What rustc lets its WebAssembly use, which every browser that the package supports knows. */
const WASM_FEATURES = ["bulk-memory", "multivalue", "mutable-globals", "nontrapping-float-to-int", "reference-types", "sign-ext"];
/** The modules that run in threads of their own, and the names of their scripts. */
const SCRIPTS = [["worker/script.js", "worker"], ["voice/worklet.js", "voice-worklet"]];
const BIN = join(HERE, "node_modules/.bin");

function run(program, ...args) {
  execFileSync(program, args, { cwd: HERE, stdio: ["ignore", "inherit", "inherit"] });
}

function read(program, ...args) {
  return execFileSync(program, args, { cwd: HERE, encoding: "utf8", maxBuffer: 1 << 26 });
}

function write(file, text) {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

/** A module with one text. */
function writeText(file, text) {
  write(`${file}.js`, `export default ${JSON.stringify(text)};\n`);
  write(`${file}.d.ts`, "declare const text: string;\nexport default text;\n");
}

function buildWasm(entry, features, pkg = join(HERE, "pkg")) {
  // A folder for each: cargo gives the WebAssembly of all of them the same name.
  const target = join(JSON.parse(read("cargo", "metadata", "--no-deps", "--format-version", "1")).target_directory, "npm", entry);
  const chosen = ["--no-default-features", "--features", features];
  run("cargo", "build", "--quiet", "--locked", "-p", "rakwire-wasm", "--lib", "--profile", "npm", "--target", TARGET, "--target-dir", target, ...chosen);
  const folder = mkdtempSync(join(tmpdir(), "rakwire-build-"));
  const built = join(target, TARGET, "npm", "rakwire_wasm.wasm");
  // Only numbers pass between the WebAssembly and JavaScript, so the glue is not needed.
  run("wasm-bindgen", built, "--out-dir", folder, "--out-name", "rakwire", "--target", "web", "--no-typescript");
  mkdirSync(pkg, { recursive: true });
  const wasm = join(pkg, `${entry}.wasm`);
  const optimise = ["-Oz", "--converge", "--strip-debug", "--strip-producers", "--strip-target-features"];
  const enable = WASM_FEATURES.map((feature) => `--enable-${feature}`);
  run(join(BIN, "wasm-opt"), ...optimise, ...enable, join(folder, "rakwire_bg.wasm"), "-o", wasm);
  rmSync(folder, { recursive: true });
  writeText(join(pkg, entry), gzipSync(readFileSync(wasm), { level: 9 }).toString("base64"));
}

/** Makes a script of its own out of a module, as a file and as a text. */
async function buildScript(module, name) {
  const { outputFiles } = await build({
    entryPoints: [join(HERE, "dist", module)],
    bundle: true,
    minify: true,
    format: "iife",
    target: "es2022",
    write: false,
  });
  const [{ text }] = outputFiles;
  write(join(HERE, "pkg", `${name}.js`), text);
  writeText(join(HERE, "pkg", `${name}-source`), text);
}

async function buildTypeScript() {
  rmSync(join(HERE, "dist"), { recursive: true, force: true });
  // tsc wants to know the type of what is made of its own output.
  SCRIPTS.forEach(([, name]) => writeText(join(HERE, "pkg", `${name}-source`), ""));
  run(join(BIN, "tsc"));
  for (const [module, name] of SCRIPTS) {
    await buildScript(module, name);
  }
}

const [option, value] = process.argv.slice(2);
if (option === "--server") {
  buildWasm("accepting", "npm,npm-server", value);
} else if (option === "--entry") {
  buildWasm(value, ENTRIES[value]);
} else {
  if (option !== "--typescript") {
    rmSync(join(HERE, "pkg"), { recursive: true, force: true });
    Object.entries(ENTRIES).forEach(([entry, features]) => buildWasm(entry, features));
  }
  await buildTypeScript();
}
