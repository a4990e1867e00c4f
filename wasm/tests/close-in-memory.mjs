// Run by close.test.mjs in a separate Node, because it replaces the clock. Prints the time in milliseconds that each
// side takes to close a connection without network delay.

import { openInMemory } from "./in-memory.mjs";

const took = {};
for (const side of ["client", "accepted"]) {
  const { [side]: connection, step } = await openInMemory();
  // Waits until all acknowledgements of the handshake have been sent.
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
