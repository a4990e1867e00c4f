// Started by allocations.test.mjs in a Node of its own whose heap is not collected meanwhile. Prints how many bytes of it a
// message takes that is sent and received, and what the message itself has of them.

import { PerformanceObserver } from "node:perf_hooks";

import { openInMemory } from "./in-memory.mjs";

const MESSAGE = new Uint8Array(100).fill(0xfe);
/** Messages in a datagram: what a datagram takes is the same for each of these numbers. */
const [FEW, MANY] = [1, 11];
/** So long that the code is optimised. */
const WARM_UP = 6_000;
const STEPS = 2_000;
const OPTIONS = { reliability: "reliable" };

const { client, accepted, step } = await openInMemory();
const collections = new PerformanceObserver(() => undefined);
collections.observe({ entryTypes: ["gc"] });
let received = 0;
/** What was received last: nobody can tell then that it is not needed. */
let last;

/** The bytes of the heap that work takes. */
function bytesOf(work) {
  globalThis.gc();
  collections.takeRecords();
  const before = process.memoryUsage().heapUsed;
  work();
  const bytes = process.memoryUsage().heapUsed - before;
  if (collections.takeRecords().length > 0) {
    throw new Error("the heap was collected meanwhile");
  }
  return bytes;
}

/** Sends so many messages in each of so many milliseconds, and waits for all. */
function exchange(messages, steps) {
  received = 0;
  for (let done = 0; done < steps; done++) {
    for (let sent = 0; sent < messages; sent++) {
      client.send(MESSAGE, OPTIONS);
    }
    step();
    step();
  }
  for (let more = 0; received < messages * steps; more++) {
    if (more > 10_000) {
      throw new Error(`${received} of ${messages * steps} messages arrived`);
    }
    step();
  }
}

/** The least of several measurements: now and then the engine allocates for itself. */
const least = (measure) => Math.min(...Array.from({ length: 5 }, measure));

/** The bytes of the heap that each message takes which shares a datagram with others. */
function perMessage(onMessage) {
  accepted.onMessage = onMessage;
  step();
  exchange(FEW, WARM_UP);
  exchange(MANY, WARM_UP);
  const few = least(() => bytesOf(() => exchange(FEW, STEPS)));
  const many = least(() => bytesOf(() => exchange(MANY, STEPS)));
  return (many - few) / (STEPS * (MANY - FEW));
}

/** What a message is made of. */
function ownBytes() {
  const make = () => {
    for (let made = 0; made < STEPS * MANY; made++) {
      last = { bytes: MESSAGE.slice(0, 100), reliability: "reliable", channel: made & 31 };
    }
  };
  make();
  return least(() => bytesOf(make)) / (STEPS * MANY);
}

const count = (message) => {
  received += 1;
  last = message;
};
const result = {
  own: ownBytes(),
  message: perMessage(count),
  // To see that one object more is seen.
  withAnother: perMessage((message) => {
    received += 1;
    last = { message };
  }),
};
console.log(JSON.stringify(result));
process.exit(last === undefined ? 1 : 0);
