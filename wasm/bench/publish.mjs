// Writes the figures of `cargo xtask bench npm --publish` into docs/busy-page.md, with the machine and the commit.

import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { availableParallelism, cpus, loadavg, release } from "node:os";
import { fileURLToPath } from "node:url";

const DOCUMENT = fileURLToPath(new URL("../../docs/busy-page.md", import.meta.url));
const BEGIN = "<!-- figures: written by `cargo xtask bench npm --publish` -->";
const END = "<!-- end of the figures -->";

const load = () => loadavg()[0].toFixed(2);

/** Returns a function that formats the sentences about the run, which began with this call. */
export function environment() {
  const outputOf = (program, ...args) => execFileSync(program, args, { encoding: "utf8" }).trim();
  // Figures that were published before are no change of the code.
  const changes = outputOf("git", "status", "--porcelain", "-uno", "--", ":(top)", ":(top,exclude)docs");
  const commit = outputOf("git", "rev-parse", "--short=12", "HEAD") + (changes === "" ? "" : "-dirty");
  const [rustc, before] = [outputOf("rustc", "--version"), load()];
  const machine = `${cpus()[0]?.model ?? "unknown"}, ${availableParallelism()} cores (Linux ${release()}), Node ${process.version}`;
  return () =>
    `Measured by \`cargo xtask bench npm\` at commit ${commit} with ${rustc}, on ${machine}. The load of the machine was ${before} before and ${load()} after.`;
}

/** Replaces the figures in the document. */
export function publish(sentences, tables) {
  writeFileSync(DOCUMENT, replaced(readFileSync(DOCUMENT, "utf8"), `${sentences()}\n\n${tables}`));
}

/** Returns the document with new figures between its markers. */
export function replaced(document, figures) {
  const [begin, end] = [document.indexOf(BEGIN), document.indexOf(END)];
  if (begin < 0 || end < begin) {
    throw new Error(`${DOCUMENT} has no markers for the figures`);
  }
  return `${document.slice(0, begin)}${BEGIN}\n\n${figures}\n\n${document.slice(end)}`;
}
