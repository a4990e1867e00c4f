// Arbitrary input from fake data channels.

import { test } from "node:test";

import { PROTOCOLS } from "./protocols.mjs";
import { outlives, spoilDataChannels } from "./spoiled.mjs";

for (const protocol of PROTOCOLS) {
  test(`${protocol.name}: a client continues after arbitrary data from data channels`, (t) => outlives(t, protocol, "webrtc", spoilDataChannels));
}
