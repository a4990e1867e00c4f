// Input from data channels that the test controls.

import { test } from "node:test";

import { PROTOCOLS } from "./protocols.mjs";
import { outlives, spoilDataChannels } from "./spoiled.mjs";

for (const protocol of PROTOCOLS) {
  test(`${protocol.name}: nothing that data channels deliver breaks a client`, (t) => outlives(t, protocol, "webrtc", spoilDataChannels));
}
