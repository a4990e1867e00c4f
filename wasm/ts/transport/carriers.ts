/** The carriers to a relay that this package has. */

import { RakwireError } from "../errors.js";
import type { WebSocketConstructor } from "../types.js";
import type { CarrierKind, CarrierName } from "./carrier.js";
import { CARRIERS } from "./carrier.js";
import { readWebSocket, webSocket } from "./websocket.js";
import { webRtc } from "./webrtc.js";
import { webTransport } from "./webtransport.js";

export const carrierKinds: Record<CarrierName, CarrierKind> = {
  webtransport: webTransport,
  webrtc: webRtc,
  websocket: webSocket,
};

/** Those that the platform has, of these. */
export function present(names: readonly CarrierName[], given: WebSocketConstructor | undefined): CarrierName[] {
  return names.filter((name) => carrierKinds[name].isThere(given));
}

/** The carriers that a caller wants: all, or a single one, which has to be there. */
export function readCarriers(wanted: "auto" | CarrierName, given: WebSocketConstructor | undefined): CarrierName[] {
  if (wanted !== "auto" && !CARRIERS.includes(wanted)) {
    throw new RakwireError("bad-option", `transport must be auto, ${CARRIERS.join(", ")}, not ${String(wanted)}`);
  }
  const names = present(wanted === "auto" ? CARRIERS : [wanted], given);
  if (names.length === 0) {
    if (wanted === "auto" || wanted === "websocket") {
      readWebSocket(given);
    }
    throw new RakwireError("no-transport", `this platform has no ${wanted}`);
  }
  return names;
}
