/** How the end of a carrier is told. */

import type { CarrierClose } from "./carrier.js";
import { LOST } from "./carrier.js";
import type { TransportEnd } from "./transport.js";

/** The close codes of a relay with a code of their own here, by `docs/relay-protocol.md`. */
const CODES: Readonly<Record<number, TransportEnd["code"]>> = {
  4403: "origin-refused",
  4406: "incompatible-protocol",
  4502: "server-unreachable",
};
/** What a relay says to a banned address with 4403. */
const BANNED = "this address is banned";

/** The code and the description of the end of a carrier. */
export function describeClose(url: URL, { code, reason }: CarrierClose, wasOpen: boolean): TransportEnd {
  // A code was said by the relay, but for this one.
  if (!wasOpen && code === LOST) {
    const why = reason === "" ? "" : `: ${reason}`;
    return { code: "relay-unreachable", reason: `the relay at ${url.host} cannot be reached${why}`, relayCode: code };
  }
  const isLost = reason === "" || code === LOST;
  const told = isLost ? `connection to the relay lost (code ${code})` : `relay closed: ${reason} (code ${code})`;
  return { code: reason === BANNED ? "banned" : (CODES[code] ?? "relay-closed"), reason: told, relayCode: code };
}
