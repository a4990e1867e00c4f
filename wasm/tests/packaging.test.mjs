// The package as users install it: packed, installed in another folder, type-checked and run.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { before, after, test } from "node:test";

const PACKAGE = fileURLToPath(new URL("..", import.meta.url));
let folder;
let contents;
let filename;

before(() => {
  folder = mkdtempSync(join(tmpdir(), "rakwire-package-"));
  const packed = execFileSync("npm", ["pack", "--json", "--pack-destination", folder], { cwd: PACKAGE, encoding: "utf8" });
  const [{ filename: name, files }] = Object.values(JSON.parse(packed));
  filename = name;
  contents = files.map(({ path }) => path).sort();
  cpSync(join(PACKAGE, "tests/fixture"), join(folder, "fixture"), { recursive: true });
  execFileSync("npm", ["install", "--offline", "--no-audit", "--no-fund", join("..", filename)], {
    cwd: join(folder, "fixture"),
    stdio: ["ignore", "ignore", "inherit"],
  });
});

after(() => rmSync(folder, { recursive: true, force: true }));

test("the package contains the required files and nothing outside dist, pkg and ts", () => {
  for (const path of ["README.md", "LICENSE-MIT", "LICENSE-APACHE", "dist/index.js", "dist/index.d.ts", "pkg/rakwire.js", "pkg/raknet.js", "pkg/game-protocol.wasm", "pkg/secure.js", "pkg/secure.wasm", "dist/node/secure.js", "dist/node/server.js", "pkg/server.wasm", "pkg/worker.js"]) {
    assert.ok(contents.includes(path), `${path} is missing`);
  }
  const unexpected = contents.filter((path) => !/^(dist|pkg|ts)\/|^(README\.md|LICENSE-\w+|package\.json)$/.test(path));
  assert.deepEqual(unexpected, []);
});

test("the install command of the README names the packed file", () => {
  const readme = readFileSync(join(PACKAGE, "README.md"), "utf8");
  const named = [...readme.matchAll(/^npm install \S*?([^/\s]+)$/gm)].map(([, file]) => file);
  assert.deepEqual(named, [filename]);
});

test("every source map leads to a source in the package", () => {
  const installed = join(folder, "fixture/node_modules/rakwire");
  const maps = contents.filter((path) => /\.map$/.test(path));
  for (const module of ["index", "connection", "transport/relay", "codec/rabbit", "node/platform"]) {
    assert.ok(maps.includes(`dist/${module}.js.map`) && maps.includes(`dist/${module}.d.ts.map`), module);
  }
  for (const path of maps) {
    const map = join(installed, path);
    const { sources, sourceRoot = "" } = JSON.parse(readFileSync(map, "utf8"));
    assert.equal(sources.length, 1, path);
    assert.ok(existsSync(join(dirname(map), sourceRoot, sources[0])), `${path} names ${sources[0]}`);
    assert.match(readFileSync(map.slice(0, -4), "utf8"), new RegExp(`^//# sourceMappingURL=${basename(map)}$`, "m"));
  }
});

/** Type-checks the project of a `tsconfig.json` in the fixture. */
function typeCheck(config) {
  const tsc = join(PACKAGE, "node_modules/typescript/bin/tsc");
  try {
    execFileSync(process.execPath, [tsc, "-p", config], { cwd: join(folder, "fixture"), encoding: "utf8" });
  } catch (error) {
    assert.fail(error.stdout);
  }
}

test("an installed package type-checks without skipLibCheck", () => typeCheck("tsconfig.json"));

/**
 * Returns the TypeScript programs of a document. A program without imports gets the imports of the program before it.
 */
function programs(document) {
  let imports = "";
  return [...document.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, program]) => {
    const own = program.match(/^import .*$/gm);
    imports = own?.join("\n") ?? imports;
    return own === null ? `${imports}\n${program}` : program;
  });
}

test("the programs of the guide type-check", () => {
  const guide = programs(readFileSync(join(PACKAGE, "../docs/guide-npm.md"), "utf8"));
  assert.match(guide[0], /FIRST_FREE_ID/, "the first program must be the first game of the guide");
  assert.ok(guide.length >= 5, `${guide.length} programs`);
  const files = guide.map((program, index) => {
    const file = `guide-${index + 1}.ts`;
    writeFileSync(join(folder, "fixture", file), program);
    return file;
  });
  const config = { extends: "./tsconfig.json", files: ["guide.d.ts", ...files] };
  writeFileSync(join(folder, "fixture/guide.json"), JSON.stringify(config));
  typeCheck("guide.json");
});

test("an installed package runs", () => {
  const printed = execFileSync(process.execPath, ["run.mjs"], { cwd: join(folder, "fixture"), encoding: "utf8" });
  assert.equal(printed, "relay-unreachable\n");
});

test("importing the entries outside a browser succeeds and leaves no timer or socket open", () => {
  const printed = execFileSync(process.execPath, ["import.mjs"], { cwd: join(folder, "fixture"), encoding: "utf8" });
  assert.equal(printed, "0\n");
});
