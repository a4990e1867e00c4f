/** How carriers and transports to a relay end: the codes, and what they mean. */

/** The code of a connection that was lost. */
export const LOST = 1006;
/** The code of one that its client closed. */
export const NORMAL_CLOSURE = 1000;
/** The reason of a relay that closes with 4403 because the address is banned. */
const BANNED = "this address is banned";
/** The code of a relay that received nothing. */
const UNRESPONSIVE = 4408;


/** How a carrier ended: a close code of the relay, or {@link LOST}. */
export interface CarrierClose {
  code: number;
  reason: string;
}

/** The end of a carrier that was lost, for this reason if there is one. */
export function lost(reason: unknown = ""): CarrierClose {
  return { code: LOST, reason: String(reason) };
}

/** Why a transport ended. */
export interface TransportEnd {
  code: "relay-closed" | "relay-unreachable" | "server-unreachable" | "no-transport" | "origin-refused" | "banned" | "incompatible-protocol";
  reason: string;
  /** The close code of the relay, if there is one. */
  relayCode?: number;
}

/** The close codes of a relay with a code of their own here, by `docs/relay-protocol.md`. */
const CODES: Readonly<Record<number, TransportEnd["code"]>> = {
  4403: "origin-refused",
  4406: "incompatible-protocol",
  4502: "server-unreachable",
};

/** The code and the description of the end of a carrier. */
export function describeClose(url: URL, { code, reason }: CarrierClose, wasOpen: boolean): TransportEnd {
  // Every other code comes from the relay.
  if (!wasOpen && code === LOST) {
    const why = reason === "" ? "" : `: ${reason}`;
    return { code: "relay-unreachable", reason: `the relay at ${url.host} cannot be reached${why}`, relayCode: code };
  }
  const isLost = reason === "" || code === LOST;
  const told = isLost ? `connection to the relay lost (code ${code})` : `relay closed: ${reason} (code ${code})`;
  return { code: reason === BANNED ? "banned" : (CODES[code] ?? "relay-closed"), reason: told, relayCode: code };
}

/** The codes of a relay that has no room for a client now: the flow of one that comes back waits. */
const LATER: readonly number[] = [1013, 4429];
/**
 * The codes of a proxy that restarts, fails or has lost the relay: going away, internal error, service restart, try again later,
 * bad gateway (the registry of RFC 6455 section 11.7). The flow knows nothing of it.
 */
const BY_PROXIES: readonly number[] = [1001, 1011, 1012, 1013, 1014];
/** The reasons of a relay that has ended the flow itself with one of these codes, by `docs/relay-protocol.md`. */
const BY_THE_RELAY: readonly string[] = ["relay is shutting down", "UDP socket to the game server failed"];

/** True if the flow of a carrier with this end may wait for another carrier. */
export function isLoss({ code, reason }: CarrierClose): boolean {
  return code === LOST || code === UNRESPONSIVE || (BY_PROXIES.includes(code) && !BY_THE_RELAY.includes(reason));
}

/** True if another attempt to continue the flow may succeed after one with this end. */
export function mayComeBack(close: CarrierClose): boolean {
  return isLoss(close) || LATER.includes(close.code);
}
