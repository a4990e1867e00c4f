// The texts of reasons and errors in the WebAssembly, and their types in TypeScript.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { ENDS, ERRORS, FAILURES, instantiate, peerClasses, readTexts, recordAt, serverClasses } from "../dist/rust.js";
import { refusal } from "../dist/worker/messages.js";

/** The texts of the peers of each WebAssembly module. */
const TEXTS = ["rakwire", "raknet", "game-protocol", "secure", "server"].flatMap((name) => {
  const bytes = readFileSync(new URL(`../pkg/${name}.wasm`, import.meta.url));
  const { memory, ...classes } = instantiate(new WebAssembly.Module(bytes), (wasm) => ({ ...peerClasses(wasm), ...serverClasses(wasm) }));
  return Object.entries(classes).flatMap(([known, rust]) => {
    const peer = rust?.create(1n, 2n, 3n, 4n, 64, 64, 0, 0, 0, 0);
    return rust === undefined ? [] : [{ name: `${name}.wasm, ${known}`, texts: readTexts(recordAt(memory, rust.texts(peer))) }];
  });
});

/** Returns the members of a string union in the source. */
function union(file, type) {
  const source = readFileSync(new URL(`../ts/${file}`, import.meta.url), "utf8");
  const [, members] = new RegExp(`export type ${type} =([^;]*);`).exec(source);
  return new Set([...members.replace(/\/\/.*/g, "").matchAll(/"([^"]+)"/g)].map(([, member]) => member));
}

test("TypeScript has the code of each reason and error", () => {
  assert.ok(TEXTS.length >= 6, `${TEXTS.map(({ name }) => name)}`);
  const errors = union("errors.ts", "ErrorCode");
  const ends = union("types.ts", "CloseCode");
  assert.ok(errors.has("no-answer") && ends.has("remote"));
  for (const { name, texts } of TEXTS) {
    for (const [paragraph, known] of [[FAILURES, errors], [ENDS, ends], [ERRORS, errors]]) {
      const unknown = texts[paragraph].filter(([code]) => !known.has(code));
      assert.deepEqual(unknown, [], `${name}, paragraph ${paragraph}`);
      assert.ok(texts[paragraph].every(([, text]) => text.length > 0), name);
    }
  }
});

test("errors that a page detects before its worker have the same texts as errors of the worker", () => {
  for (const { name, texts } of TEXTS) {
    const said = (code) => texts[ERRORS].filter(([other]) => other === code).map(([, text]) => text);
    for (const code of ["not-connected", "empty-message", "reserved-id", "queue-full", "too-long"]) {
      const { code: given, message } = refusal(code);
      assert.equal(given, code);
      // The page can detect that a message is too long, but not which of the two limits applies.
      const isSaid = code === "too-long" ? said(code).length === 2 : said(code).includes(message);
      assert.ok(isSaid, `${name}: ${code}: ${message}`);
    }
  }
});
