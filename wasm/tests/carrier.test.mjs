// TCP retransmits the lost data of a WebSocket, so a connection over a WebSocket must not resend it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { connectTo, echoFixture, PROTOCOLS } from "./protocols.mjs";
import { echoOf, nextNumbers, numbered } from "./support.mjs";
import { startTcpWay } from "./way.mjs";

const COUNT = 20;

/** Returns the number of datagrams that a client resends while its WebSocket is stalled for 700 ms. */
async function sentAgain(t, relay, protocol) {
  const way = await startTcpWay(t, relay);
  const connection = await connectTo({ address: new URL(way.url).host }, protocol);
  await echoOf(connection, numbered(0));
  const sent = () => connection.stats().datagramsLost + connection.stats().datagramsLate;
  const before = sent();
  way.pause();
  for (let number = 1; number <= COUNT; number++) {
    connection.send(numbered(number));
    await sleep(20);
  }
  await sleep(300);
  way.resume();
  await nextNumbers(connection, COUNT);
  const again = sent() - before;
  await connection.close();
  return again;
}

for (const protocol of PROTOCOLS) {
  test(`${protocol.name}: messages delayed by a WebSocket are not resent`, async (t) => {
    const { relay } = await echoFixture(t, protocol);
    let again;
    // On a busy machine the delay may exceed a second, after which the client probes.
    for (let attempt = 0; attempt < 5 && again !== 0; attempt++) {
      again = await sentAgain(t, relay, protocol);
    }
    assert.equal(again, 0);
  });
}
