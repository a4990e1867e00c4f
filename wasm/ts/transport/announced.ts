/** Transport discovery: the announcement of a relay at `/transports`. */

import type { Timers } from "../waits.js";
import type { CarrierClose } from "./close.js";
import { targetAddressSpace } from "./local-network.js";

/** Milliseconds until a relay without an answer counts as unavailable. */
const ANSWER_MS = 10_000;
/** The status of a server without this endpoint. */
const NOT_FOUND = 404;

/** The WebTransport endpoint of a relay. */
export interface AnnouncedWebTransport {
  /** The UDP port, at the host of the relay. */
  port: number;
  path: string;
  /** SHA-256 of the certificates in base64; empty if a certificate authority signed them. */
  certificate_hashes: string[];
}

/** The WebRTC data channel endpoint of a relay. */
export interface AnnouncedWebRtc {
  /** The UDP port. */
  port: number;
  /** SHA-256 of the certificate, as pairs of hexadecimal digits with colons. */
  fingerprint: string;
  /** The addresses of the relay, if they differ from the host of its URL. */
  addresses?: string[];
}

/** The transports of a relay, or the reason it refuses this page. */
export interface Announced {
  refused?: CarrierClose;
  /** The path of the WebSocket, relative to the announcement. */
  websocket?: { path: string };
  webtransport?: AnnouncedWebTransport;
  webrtc?: AnnouncedWebRtc;
}

/** The announced URL of the WebSocket; `undefined` if it is the given one, or none is announced. */
export function announcedWebSocket(given: URL, { websocket }: Announced): URL | undefined {
  if (websocket === undefined) {
    return undefined;
  }
  // A proxy may have put the relay under a path prefix.
  const url = new URL(`.${websocket.path}`, given);
  url.search = given.search;
  return url.pathname === given.pathname ? undefined : url;
}

/**
 * Requests the announcement of a relay; `undefined` if no relay answers. A server without the endpoint only has the
 * WebSocket.
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
    const said: unknown = await response.json();
    return response.ok ? readAnnounced(said) : readRefusal(said);
  } catch {
    return undefined;
  } finally {
    timers.clear(timer);
    signal.removeEventListener("abort", giveUp);
  }
}

/** Reads the usable transports from an answer; `undefined` if it is not from a relay. */
function readAnnounced(said: unknown): Announced | undefined {
  if (!isObject(said) || Array.isArray(said)) {
    return undefined;
  }
  const { websocket, webtransport, webrtc } = said as { [Name in keyof Announced]: unknown };
  return {
    ...(isWebSocket(websocket) && { websocket }),
    ...(isWebTransport(webtransport) && { webtransport }),
    ...(isWebRtc(webrtc) && { webrtc }),
  };
}

/** Reads the close code and the reason from a refusal. */
function readRefusal(said: unknown): Announced | undefined {
  const { code, reason = "" } = (isObject(said) ? said : {}) as Partial<CarrierClose>;
  return typeof code === "number" ? { refused: { code, reason } } : undefined;
}

const isObject = (said: unknown): said is object => typeof said === "object" && said !== null;

const isTexts = (said: unknown): boolean => Array.isArray(said) && said.every((text) => typeof text === "string");

function isWebSocket(said: unknown): said is { path: string } {
  const { path } = (isObject(said) ? said : {}) as { path?: unknown };
  return typeof path === "string" && path.startsWith("/");
}

function isWebTransport(said: unknown): said is AnnouncedWebTransport {
  const { port, path, certificate_hashes: hashes } = (isObject(said) ? said : {}) as Partial<AnnouncedWebTransport>;
  return typeof port === "number" && typeof path === "string" && isTexts(hashes);
}

function isWebRtc(said: unknown): said is AnnouncedWebRtc {
  const { port, fingerprint, addresses = [] } = (isObject(said) ? said : {}) as Partial<AnnouncedWebRtc>;
  return typeof port === "number" && typeof fingerprint === "string" && isTexts(addresses);
}
