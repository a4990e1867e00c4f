// The recorded messages, through the JavaScript API of the package.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const folder = new URL(process.env.SNOWFIGHT_PACKAGE ? `file://${process.env.SNOWFIGHT_PACKAGE}/` : "../pkg/", import.meta.url);
const { initSync, isReliable, packClientMessage, unpackClientMessage, unpackServerMessage } = await import(new URL("snowfight_wasm.js", folder));

initSync({ module: readFileSync(new URL("snowfight_wasm_bg.wasm", folder)) });

const file = new URL("./game-protocol.json", import.meta.url);
// Floats are recorded with their bits; those that JSON cannot write come from there.
const float = (value) => {
  const view = new DataView(new ArrayBuffer(4));
  view.setUint32(0, Number.parseInt(value.bits, 16));
  return view.getFloat32(0);
};
const plain = (_, value) => (value?.bits && "f32" in value ? float(value) : value);
const vectors = JSON.parse(readFileSync(file, "utf8"), plain);
const messages = vectors.filter((vector) => vector.category === "message");
const bytes = (hex) => Uint8Array.from(Buffer.from(hex, "hex"));

test("recorded messages of clients are packed and unpacked", () => {
  const own = messages.filter((vector) => vector.type === "ClientMessage");
  assert.ok(own.length >= 15);
  for (const { value, hex, name, reliable } of own) {
    assert.deepEqual(unpackClientMessage(bytes(hex)), value, name);
    assert.equal(Buffer.from(packClientMessage(value)).toString("hex"), hex, name);
    assert.equal(isReliable(value), reliable, name);
  }
});

test("recorded messages of servers are unpacked", () => {
  const theirs = messages.filter((vector) => vector.type === "ServerMessage");
  assert.ok(theirs.length >= 15);
  for (const { value, hex, name } of theirs) assert.deepEqual(unpackServerMessage(bytes(hex)), value, name);
});

test("malformed messages throw an error with the bit position", () => {
  assert.throws(() => unpackServerMessage(new Uint8Array(0)), /bit 0: the input ends/);
  assert.throws(() => unpackClientMessage(bytes("07")), /bit 1: ActionKind has no variant 3/);
  assert.throws(() => packClientMessage({ Action: { Dance: null } }), /Dance/);
  assert.throws(() => packClientMessage(undefined));
});
