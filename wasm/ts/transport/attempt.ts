/** Opening a carrier that may not even be made, as a WebSocket that the policy of the page forbids. */

import type { Carrier, CarrierEvents } from "./carrier.js";
import { LOST } from "./carrier.js";

/** Opens a carrier. One that cannot be made fails a moment later, as others do. */
export function attempt(open: (events: CarrierEvents) => Carrier, events: CarrierEvents): Carrier {
  try {
    return open(events);
  } catch (error) {
    queueMicrotask(() => events.onClose({ code: LOST, reason: String(error) }));
    const nothing = (): void => undefined;
    return { hasRoom: false, bufferedAmount: 0, longestDatagram: 0, send: nothing, requestFlow: nothing, close: nothing };
  }
}
