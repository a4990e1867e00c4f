/** Opens transports. */

import { openRelay } from "./relay.js";
import type { Transport, TransportEvents, TransportSettings } from "./transport.js";
import { directTransport } from "./transport.js";

/** Starts to open the transport that its URL names. */
export function openTransport(settings: TransportSettings, events: TransportEvents): Transport {
  return (directTransport(new URL(settings.url)) ?? openRelay)(settings, events);
}
