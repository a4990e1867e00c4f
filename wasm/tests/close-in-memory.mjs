// Started by close.test.mjs in a Node of its own, as it plays the clock. Prints how many milliseconds each side of a connection
// needs to close it, where a datagram takes none.

import { openInMemory } from "./in-memory.mjs";

const took = {};
for (const side of ["client", "accepted"]) {
  const { [side]: connection, step } = await openInMemory();
  // What the handshake has left to acknowledge is acknowledged by then.
  for (let steps = 0; steps < 1_000; steps++) {
    step();
  }
  let code;
  connection.close().then((info) => (code = info.code));
  let steps = 0;
  for (; code === undefined && steps < 10_000; steps++) {
    step();
    await undefined;
    await undefined;
  }
  took[side] = [code, steps];
}
console.log(JSON.stringify(took));
process.exit();
