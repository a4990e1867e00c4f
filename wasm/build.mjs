// Builds the package from the output of `wasm-pack build`: `node build.mjs`, or `npm run build`. Needs Rust with the
// target wasm32-unknown-unknown, wasm-pack, wasm-bindgen of the version in Cargo.lock, and the npm packages of
// package-lock.json. With the same versions, the output is byte for byte the same.
//
// `--typescript` keeps the WebAssembly of the last build. `--entry NAME` only builds the WebAssembly of one entry.
// `--server FOLDER` builds a WebAssembly module with peers that also accept connections, for measurements.
//
// `--development` takes seconds: all entries share one large, unoptimised WebAssembly, and types are not checked.
// Further arguments are passed to cargo, to build the crates of pages in the same run. `--check` fails if pkg/ contains
// a development build.
//
// The output:
//
// - pkg/NAME.wasm, pkg/NAME.js: the WebAssembly of an entry, as a file and as a text in a module
// - pkg/NAME-exports.d.ts: the types of its exports, as wasm-bindgen declares them
// - pkg/worker*.js: the script of the worker, as a file and as a text in a module
// - pkg/voice-worklet*.js: the script of the audio worklet, in the same two forms
// - pkg/DEVELOPMENT: marks a development build
// - dist/: the output of tsc for ts/
// - dist/node/: the entries for Node, which add the features of Node to the entries of the same names

import { execFileSync, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

import { build } from "esbuild";

const HERE = dirname(fileURLToPath(import.meta.url));
const TARGET = "wasm32-unknown-unknown";
/** The features of the crate for each WebAssembly module. */
const ENTRIES = { "rakwire": "npm", "raknet": "npm-raknet", "game-protocol": "npm-game-protocol", "secure": "npm-secure", "server": "npm-raknet-server" };
/** All features, and `std`, because the crates of pages need the standard library. */
const DEVELOPMENT_FEATURES = ["npm", "npm-secure", "npm-raknet-server", "std"].map((feature) => `rakwire-wasm/${feature}`).join(",");
const DEVELOPMENT_MARK = join(HERE, "pkg/DEVELOPMENT");
/** The WebAssembly features that rustc may use. All supported browsers have them. */
const WASM_FEATURES = ["bulk-memory", "multivalue", "mutable-globals", "nontrapping-float-to-int", "reference-types", "sign-ext"];
const OPTIMISE = [
  ...["-Oz", "--converge", "--strip-debug", "--strip-producers", "--strip-target-features"],
  ...WASM_FEATURES.map((feature) => `--enable-${feature}`),
];
/** The modules that run in their own threads, each with the name of its script. */
const SCRIPTS = [["worker/script.js", "worker"], ["voice/worklet.js", "voice-worklet"]];
const BIN = join(HERE, "node_modules/.bin");

function run(program, ...args) {
  return runWith({}, program, ...args);
}

/** Runs a program with additional environment variables. */
async function runWith(more, program, ...args) {
  const env = { ...process.env, ...more };
  const [code] = await once(spawn(program, args, { cwd: HERE, env, stdio: ["ignore", "inherit", "inherit"] }), "exit");
  if (code !== 0) {
    throw new Error(`${program} failed`);
  }
}

function read(program, ...args) {
  return execFileSync(program, args, { cwd: HERE, encoding: "utf8", maxBuffer: 1 << 26 });
}

function write(file, text) {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

/** Writes a module that exports one text. */
function writeText(file, text) {
  write(`${file}.js`, `export default ${JSON.stringify(text)};\n`);
  write(`${file}.d.ts`, "declare const text: string;\nexport default text;\n");
}

/** Writes the module of an entry, next to its WebAssembly. */
function writePacked(file, level) {
  writeText(file, gzipSync(readFileSync(`${file}.wasm`), { level }).toString("base64"));
}

function targetDirectory() {
  return JSON.parse(read("cargo", "metadata", "--no-deps", "--format-version", "1")).target_directory;
}

/**
 * Returns the WebAssembly and the types of its exports, from the output of wasm-bindgen in a folder that `make` fills.
 * Only numbers cross the boundary to JavaScript, so the generated JavaScript is not needed.
 */
async function bound(make) {
  const folder = mkdtempSync(join(tmpdir(), "rakwire-build-"));
  try {
    await make(folder);
    const [wasm, types] = ["rakwire_bg.wasm", "rakwire_bg.wasm.d.ts"].map((name) => readFileSync(join(folder, name)));
    return { wasm, types };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/**
 * Compiles the WebAssembly of an entry with wasm-pack, without wasm-opt, and returns it with the types of its exports.
 */
async function compile(npm, entry, features) {
  // Each entry has its own target folder, because cargo gives the WebAssembly of all entries the same name.
  const target = join(npm, entry);
  const other = Object.keys(ENTRIES).find((entry) => existsSync(join(npm, entry)));
  if (!existsSync(target) && other !== undefined) {
    // Copies the target folder of another entry, because most dependencies of the entries are equal.
    await run("cp", "-Rp", join(npm, other), target);
    const own = readdirSync(target, { recursive: true }).filter((name) => /^rakwire[-_]wasm/.test(basename(name)));
    own.forEach((name) => rmSync(join(target, name), { recursive: true, force: true }));
  }
  const build = ["build", "--mode", "no-install", "--no-opt", "--no-pack", "--target", "web", "--profile", "npm", "--out-name", "rakwire"];
  const chosen = ["--quiet", "--locked", "--no-default-features", "--features", features];
  return bound((folder) => runWith({ CARGO_TARGET_DIR: target }, "wasm-pack", ...build, "--out-dir", folder, HERE, "--", ...chosen));
}

/** Optimises the WebAssembly with wasm-opt, and caches the result because wasm-opt is slow. */
async function optimise(npm, entry, input, file) {
  const { version } = JSON.parse(readFileSync(join(HERE, "node_modules/binaryen/package.json"), "utf8"));
  const hash = createHash("sha256").update(JSON.stringify([version, OPTIMISE])).update(input).digest("hex");
  const folder = join(npm, "optimised");
  const kept = join(folder, `${entry}-${hash}.wasm`);
  if (!existsSync(kept)) {
    mkdirSync(folder, { recursive: true });
    readdirSync(folder).filter((name) => name.startsWith(`${entry}-`)).forEach((name) => rmSync(join(folder, name)));
    const [before, after] = ["before", "after"].map((name) => join(folder, `${name}-${entry}.wasm`));
    writeFileSync(before, input);
    await run(join(BIN, "wasm-opt"), ...OPTIMISE, before, "-o", after);
    rmSync(before);
    // Renamed only when it is complete.
    renameSync(after, kept);
  }
  copyFileSync(kept, file);
}

/** Builds the WebAssembly of entries, compiling the next one while the previous one is optimised. */
async function buildWasm(entries, pkg = join(HERE, "pkg")) {
  const npm = join(targetDirectory(), "npm");
  mkdirSync(pkg, { recursive: true });
  let optimised = Promise.resolve();
  for (const [entry, features] of entries) {
    const { wasm, types } = await compile(npm, entry, features);
    write(join(pkg, `${entry}-exports.d.ts`), types);
    optimised = optimised.then(async () => {
      await optimise(npm, entry, wasm, join(pkg, `${entry}.wasm`));
      writePacked(join(pkg, entry), 9);
    });
  }
  await optimised;
}

/** Builds one WebAssembly module for all entries, and the crates in the cargo arguments `more`. */
async function buildDevelopmentWasm(more) {
  const chosen = ["-p", "rakwire-wasm", ...more, "--lib", "--target", TARGET, "--no-default-features", "--features", DEVELOPMENT_FEATURES];
  await run("cargo", "build", "--locked", ...chosen);
  write(DEVELOPMENT_MARK, "This is a development build, which is not published: `npm run build` replaces it.\n");
  const [first, ...others] = Object.keys(ENTRIES);
  const file = (entry, end) => join(HERE, "pkg", `${entry}${end}`);
  const built = join(targetDirectory(), TARGET, "debug", "rakwire_wasm.wasm");
  const { wasm, types } = await bound((folder) => run("wasm-bindgen", built, "--out-dir", folder, "--out-name", "rakwire", "--target", "web"));
  writeFileSync(file(first, ".wasm"), wasm);
  // The development WebAssembly contains the classes of all entries.
  Object.keys(ENTRIES).forEach((entry) => writeFileSync(file(entry, "-exports.d.ts"), types));
  writePacked(file(first, ""), 1);
  for (const entry of others) {
    copyFileSync(file(first, ".wasm"), file(entry, ".wasm"));
    [".js", ".d.ts"].forEach((end) => writeFileSync(file(entry, end), `export { default } from "./${first}.js";\n`));
  }
}

/** Bundles a module to a script, as a file and as a text. */
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

/**
 * Replaces types such as `Uint8Array<ArrayBuffer>`, which TypeScript before 5.7 rejects, by the return type of `slice`,
 * which is the same type in later versions.
 */
function widen(file) {
  const text = readFileSync(file, "utf8");
  writeFileSync(file, text.replace(/\b(Uint8Array|Float32Array)<ArrayBuffer>/g, 'ReturnType<$1["slice"]>'));
}

/** Writes the Node entries listed in package.json. */
function writeNodeEntries() {
  const { exports } = JSON.parse(readFileSync(join(HERE, "package.json"), "utf8"));
  const modules = Object.values(exports).flatMap(({ node }) => (node === undefined ? [] : [basename(node)]));
  modules.forEach((name) => write(join(HERE, "dist/node", name), `import "./platform.js";\n\nexport * from "../${name}";\n`));
}

/** Compiles ts/ to dist/. `more` are additional options of tsc. */
async function buildTypeScript(...more) {
  rmSync(join(HERE, "dist"), { recursive: true, force: true });
  // tsc needs the types of modules that are generated from its own output.
  SCRIPTS.forEach(([, name]) => writeText(join(HERE, "pkg", `${name}-source`), ""));
  await run(join(BIN, "tsc"), ...more);
  readdirSync(join(HERE, "dist"), { recursive: true }).filter((name) => name.endsWith(".d.ts")).forEach((name) => widen(join(HERE, "dist", name)));
  writeNodeEntries();
  for (const [module, name] of SCRIPTS) {
    await buildScript(module, name);
  }
}

const [option, ...values] = process.argv.slice(2);
if (option === "--server") {
  await buildWasm([["accepting", "npm,npm-server"]], values[0]);
} else if (option === "--entry") {
  await buildWasm([[values[0], ENTRIES[values[0]]]]);
} else if (option === "--check") {
  if (existsSync(DEVELOPMENT_MARK)) {
    console.error("rakwire: pkg/ has a development build, which is not for others; `npm run build` makes the package");
    process.exitCode = 1;
  }
} else {
  if (option !== "--typescript") {
    rmSync(join(HERE, "pkg"), { recursive: true, force: true });
  }
  if (option === "--development") {
    await buildDevelopmentWasm(values);
    await buildTypeScript("--noCheck");
  } else {
    if (option === undefined) {
      await buildWasm(Object.entries(ENTRIES));
    }
    await buildTypeScript();
  }
}
