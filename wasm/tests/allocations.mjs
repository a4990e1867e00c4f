// Run by allocations.test.mjs in a separate Node process that never collects garbage. Prints the heap bytes allocated
// by sending and receiving a message, and the heap bytes of the message object itself.

import { PerformanceObserver } from "node:perf_hooks";

import { openInMemory } from "./in-memory.mjs";

const MESSAGE = new Uint8Array(100).fill(0xfe);
/** The numbers of messages per datagram that are compared. The difference excludes the overhead of the datagram. */
const [FEW, MANY] = [1, 11];
/** The number of warm-up steps after which the engine has optimised the code. */
const WARM_UP = 6_000;
const STEPS = 2_000;
const OPTIONS = { reliability: "reliable" };

const { client, accepted, step } = await openInMemory();
const collections = new PerformanceObserver(() => undefined);
collections.observe({ entryTypes: ["gc"] });
let received = 0;
/** The last received message, kept so that the engine cannot optimise it away. */
let last;

/** Returns the number of heap bytes that `work` allocates. */
function bytesOf(work) {
  globalThis.gc();
  collections.takeRecords();
  const before = process.memoryUsage().heapUsed;
  work();
  const bytes = process.memoryUsage().heapUsed - before;
  if (collections.takeRecords().length > 0) {
    throw new Error("a garbage collection invalidated the measurement");
  }
  return bytes;
}

/** Sends `messages` messages in each of `steps` milliseconds, and waits until all have arrived. */
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

/** Returns the minimum of several measurements, because the engine sometimes allocates memory of its own. */
const least = (measure) => Math.min(...Array.from({ length: 5 }, measure));

/** Returns the heap bytes per message, for messages that share a datagram. */
function perMessage(onMessage) {
  accepted.onMessage = onMessage;
  step();
  exchange(FEW, WARM_UP);
  exchange(MANY, WARM_UP);
  const few = least(() => bytesOf(() => exchange(FEW, STEPS)));
  const many = least(() => bytesOf(() => exchange(MANY, STEPS)));
  return (many - few) / (STEPS * (MANY - FEW));
}

/** Returns the heap bytes of a message object with its parts. */
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
  // Verifies that one additional object is detected.
  withAnother: perMessage((message) => {
    received += 1;
    last = { message };
  }),
};
console.log(JSON.stringify(result));
process.exit(last === undefined ? 1 : 0);
