/** Which ends of carriers leave a flow of the relay behind, with which another carrier can go on. */

import type { CarrierClose } from "./carrier.js";
import { LOST } from "./carrier.js";

/** The code of a relay that heard nothing. */
const UNRESPONSIVE = 4408;
/** The codes of a relay that has no room for a client now: the flow of one that comes back waits. */
const LATER: readonly number[] = [1013, 4429];
/**
 * The codes of a proxy that restarts, fails or has lost the relay: going away, internal error, service restart, try again later,
 * bad gateway (the registry of RFC 6455 section 11.7). The flow knows nothing of it.
 */
const BY_PROXIES: readonly number[] = [1001, 1011, 1012, 1013, 1014];
/** What a relay says with one of these codes when it has ended the flow itself, by `docs/relay-protocol.md`. */
const BY_THE_RELAY: readonly string[] = ["relay is shutting down", "UDP socket to the game server failed"];

/** Whether the flow of a carrier with this end may wait for another carrier. */
export function isLoss({ code, reason }: CarrierClose): boolean {
  return code === LOST || code === UNRESPONSIVE || (BY_PROXIES.includes(code) && !BY_THE_RELAY.includes(reason));
}

/** Whether another attempt to come back may succeed after one with this end. */
export function mayComeBack(close: CarrierClose): boolean {
  return isLoss(close) || LATER.includes(close.code);
}
