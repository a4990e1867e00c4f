// Input from data channels that the test controls.

import { test } from "node:test";

import { PROTOCOLS } from "./protocols.mjs";
import { outlives, spoilDataChannels } from "./spoiled.mjs";

for (const protocol of PROTOCOLS) {
  test(`${protocol.name}: a client continues after arbitrary data from data channels`, (t) => outlives(t, protocol, "webrtc", spoilDataChannels));
}
