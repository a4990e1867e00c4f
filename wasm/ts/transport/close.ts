/** The close codes of carriers and transports to a relay, and their meaning. */

/** The code of a lost connection. */
export const LOST = 1006;
/** The code of a connection closed by the client. */
export const NORMAL_CLOSURE = 1000;
/** The reason of a relay that closes with 4403 because the address is banned. */
const BANNED = "this address is banned";
/** The code of a relay that received nothing for too long. */
const UNRESPONSIVE = 4408;


/** The end of a carrier: a close code of the relay, or {@link LOST}. */
export interface CarrierClose {
  code: number;
  reason: string;
}

/** The end of a lost carrier, with an optional reason. */
export function lost(reason: unknown = ""): CarrierClose {
  return { code: LOST, reason: String(reason) };
}

/** The end of a transport. */
export interface TransportEnd {
  code: "relay-closed" | "relay-unreachable" | "server-unreachable" | "no-transport" | "origin-refused" | "banned" | "incompatible-protocol";
  reason: string;
  /** The close code of the relay, if any. */
  relayCode?: number;
}

/** The close codes of a relay that have an error code of their own, see `docs/relay-protocol.md`. */
const CODES: Readonly<Record<number, TransportEnd["code"]>> = {
  4403: "origin-refused",
  4406: "incompatible-protocol",
  4502: "server-unreachable",
};

/** Converts the end of a carrier to a code and a description. */
export function describeClose(url: URL, { code, reason }: CarrierClose, wasOpen: boolean): TransportEnd {
  // Every other code was sent by the relay.
  if (!wasOpen && code === LOST) {
    const why = reason === "" ? "" : `: ${reason}`;
    return { code: "relay-unreachable", reason: `the relay at ${url.host} cannot be reached${why}`, relayCode: code };
  }
  const isLost = reason === "" || code === LOST;
  const description = isLost ? `connection to the relay lost (code ${code})` : `relay closed: ${reason} (code ${code})`;
  return { code: reason === BANNED ? "banned" : (CODES[code] ?? "relay-closed"), reason: description, relayCode: code };
}

/** Codes of a relay without room for a client at the moment. The flow of a returning client is kept. */
const LATER: readonly number[] = [1013, 4429];
/**
 * Codes of a proxy that restarts, fails or lost the relay: going away, internal error, service restart, try again
 * later, bad gateway (the registry of RFC 6455 section 11.7). The flow is not affected.
 */
const BY_PROXIES: readonly number[] = [1001, 1011, 1012, 1013, 1014];
/** Reasons with which a relay ends the flow itself despite one of these codes, see `docs/relay-protocol.md`. */
const BY_THE_RELAY: readonly string[] = ["relay is shutting down", "UDP socket to the game server failed"];

/** Returns true if another carrier may continue the flow after this end. */
export function isLoss({ code, reason }: CarrierClose): boolean {
  return code === LOST || code === UNRESPONSIVE || (BY_PROXIES.includes(code) && !BY_THE_RELAY.includes(reason));
}

/** Returns true if another attempt to continue the flow may succeed after one that ended like this. */
export function mayComeBack(close: CarrierClose): boolean {
  return isLoss(close) || LATER.includes(close.code);
}
