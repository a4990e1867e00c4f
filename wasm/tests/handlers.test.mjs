// Exceptions of application handlers.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";

const SCRIPT = `
import { connect } from "rakwire";
import { listen } from "rakwire/server";

const boom = (what) => () => { throw new Error(what); };
const server = await listen({ host: "127.0.0.1" });
const accepted = server.accept();
const connection = await connect("udp://127.0.0.1:" + server.address.port, { timeoutMs: 60_000 });
const other = await accepted;
other.onMessage = boom("of onMessage");
other.addEventListener("message", boom("of a listener"));
other.addEventListener("message", async () => boom("of an async listener")());
other.addEventListener("close", { handleEvent: boom("of a listener of close") });
const removed = boom("of what was removed");
other.addEventListener("close", removed);
other.removeEventListener("close", removed);
await connection.sendWithReceipt(new Uint8Array(100).fill(0xfe));
other.onMessage = undefined;
other.addEventListener("message", () => { for (;;) other.send(new Uint8Array(100_000).fill(0xfe)); });
await connection.sendWithReceipt(new Uint8Array(3_000_000).fill(0xfe));
await connection.close();
await other.closed;
await server.close();
console.log("still here");
process.exit();
`;

test("exceptions of handlers are reported, and close neither the connection nor the process", async () => {
  const cwd = new URL(".", import.meta.url).pathname;
  const { stdout, stderr } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", SCRIPT], { cwd });
  assert.equal(stdout.trim(), "still here");
  for (const text of ["of onMessage", "of a listener", "of an async listener", "of a listener of close", "try again later"]) {
    assert.match(stderr, new RegExp(text));
  }
  assert.doesNotMatch(stderr, /of what was removed/);
});
