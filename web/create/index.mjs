#!/usr/bin/env node
// Creates a project from the template: `npm create rakwire@latest my-game`.

import { cpSync, existsSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const USAGE = "usage: create-rakwire FOLDER [--package FILE]\n  --package FILE   a packed rakwire instead of the published one";

/** Prints the error in one line, and exits. */
function fail(message) {
  console.error(`create-rakwire: ${message}`);
  process.exit(2);
}

function read() {
  try {
    const options = { package: { type: "string" }, help: { type: "boolean", short: "h" } };
    return parseArgs({ allowPositionals: true, options });
  } catch (error) {
    return fail(`${error.message.split("\n")[0]}\n${USAGE}`);
  }
}

const { values, positionals } = read();
if (values.help) {
  console.log(USAGE);
  process.exit(0);
}
const [folder] = positionals;
if (folder === undefined || positionals.length > 1) {
  fail(`expected the name of one folder for the project\n${USAGE}`);
}
if (values.package !== undefined && !existsSync(values.package)) {
  fail(`--package: ${values.package} does not exist; create it with \`npm pack\` in the folder wasm`);
}
const target = resolve(folder);
try {
  if (existsSync(target) && readdirSync(target).length > 0) {
    fail(`${folder} is not empty; choose another folder`);
  }
  cpSync(fileURLToPath(new URL("template", import.meta.url)), target, { recursive: true });
  // The template contains `_gitignore`, because npm does not pack files with the name `.gitignore`.
  renameSync(join(target, "_gitignore"), join(target, ".gitignore"));
  const manifest = JSON.parse(readFileSync(join(target, "package.json"), "utf8"));
  // Converts the folder's name to a valid package name.
  manifest.name = basename(target).toLowerCase().replace(/[^a-z0-9-]+/g, "-").replace(/^-+|-+$/g, "") || "my-game";
  if (values.package !== undefined) {
    manifest.dependencies.rakwire = `file:${resolve(values.package)}`;
  }
  writeFileSync(join(target, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
} catch (error) {
  fail(error.message);
}
console.log(`Created ${folder}. Next:\n\n  cd ${folder}\n  npm install\n  npm run dev\n\nREADME.md explains how to start a server for it.`);
