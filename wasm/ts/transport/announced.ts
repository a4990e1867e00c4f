/** Transport discovery: requests the announcement of a relay at `/transports`. */

import type { Timers } from "../waits.js";
import type { Announced, AnnouncedWebRtc, AnnouncedWebTransport, CarrierClose } from "./carrier.js";
import { targetAddressSpace } from "./local-network.js";

/** The time in milliseconds without an answer after which a relay counts as unavailable. */
const ANSWER_MS = 10_000;
/** The HTTP status of a server without this endpoint. */
const NOT_FOUND = 404;

/** Returns the announced URL of the WebSocket; `undefined` if none is announced or it equals the given URL. */
export function announcedWebSocket(relay: URL, { websocket }: Announced): URL | undefined {
  if (websocket === undefined) {
    return undefined;
  }
  // A proxy may serve the relay under a path prefix.
  const url = new URL(`.${websocket.path}`, relay);
  url.search = relay.search;
  return url.pathname === relay.pathname ? undefined : url;
}

/**
 * Requests the announcement of a relay. Returns `undefined` if no relay answers. A relay that answers with the status
 * 404 supports only the WebSocket, for which the result is empty.
 */
export async function fetchAnnounced(relay: URL, signal: AbortSignal, timers: Timers): Promise<Announced | undefined> {
  if (signal.aborted) {
    return undefined;
  }
  const url = new URL("transports", relay);
  url.protocol = relay.protocol.replace("ws", "http");
  const attempt = new AbortController();
  const giveUp = (): void => attempt.abort();
  signal.addEventListener("abort", giveUp);
  const timer = timers.set(giveUp, ANSWER_MS);
  try {
    const response = await fetch(url, { signal: attempt.signal, ...targetAddressSpace(url) });
    if (response.status === NOT_FOUND) {
      return {};
    }
    const value: unknown = await response.json();
    return response.ok ? readAnnounced(value) : readRefusal(value);
  } catch {
    return undefined;
  } finally {
    timers.clear(timer);
    signal.removeEventListener("abort", giveUp);
  }
}

/** Reads the usable transports from an answer; `undefined` if the answer is not from a relay. */
function readAnnounced(value: unknown): Announced | undefined {
  if (!isObject(value) || Array.isArray(value)) {
    return undefined;
  }
  const { websocket, webtransport, webrtc } = value as { [Name in keyof Announced]: unknown };
  return {
    ...(isWebSocket(websocket) && { websocket }),
    ...(isWebTransport(webtransport) && { webtransport }),
    ...(isWebRtc(webrtc) && { webrtc }),
  };
}

/** Reads the close code and the reason from a refusal; `undefined` if the answer is something else. */
function readRefusal(value: unknown): Announced | undefined {
  const { code, reason = "" } = (isObject(value) ? value : {}) as Partial<CarrierClose>;
  return typeof code === "number" ? { refused: { code, reason } } : undefined;
}

const isObject = (value: unknown): value is object => typeof value === "object" && value !== null;

const isTexts = (value: unknown): boolean => Array.isArray(value) && value.every((text) => typeof text === "string");

function isWebSocket(value: unknown): value is { path: string } {
  const { path } = (isObject(value) ? value : {}) as { path?: unknown };
  return typeof path === "string" && path.startsWith("/");
}

function isWebTransport(value: unknown): value is AnnouncedWebTransport {
  const { port, path, certificate_hashes: hashes } = (isObject(value) ? value : {}) as Partial<AnnouncedWebTransport>;
  return typeof port === "number" && typeof path === "string" && isTexts(hashes);
}

function isWebRtc(value: unknown): value is AnnouncedWebRtc {
  const { port, fingerprint, addresses = [] } = (isObject(value) ? value : {}) as Partial<AnnouncedWebRtc>;
  return typeof port === "number" && typeof fingerprint === "string" && isTexts(addresses);
}
