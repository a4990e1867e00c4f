/** What a relay says of its transports, at `/transports`. */

import type { Timers } from "../waits.js";
import type { CarrierClose } from "./close.js";
import { targetAddressSpace } from "./local-network.js";

/** How long a relay may take to answer. */
const ANSWER_MS = 10_000;
/** The status of a server that does not know the question. */
const NOT_FOUND = 404;

/** WebTransport at a relay. */
export interface AnnouncedWebTransport {
  /** The UDP port; the host is that of the relay. */
  port: number;
  path: string;
  /** SHA-256 of the certificates, in base64; none if one of an authority is used. */
  certificate_hashes: string[];
}

/** Data channels of WebRTC at a relay. */
export interface AnnouncedWebRtc {
  /** The UDP port. */
  port: number;
  /** SHA-256 of the certificate, in pairs of hexadecimal digits with colons. */
  fingerprint: string;
  /** Where the relay is, if the host of its URL does not tell. */
  addresses?: string[];
}

/** The transports of a relay, or why it tells this page none. */
export interface Announced {
  refused?: CarrierClose;
  /** The path of the WebSocket, beside that of the announcement itself. */
  websocket?: { path: string };
  webtransport?: AnnouncedWebTransport;
  webrtc?: AnnouncedWebRtc;
}

/** The URL of the WebSocket that a relay announces; `undefined` if it is the one that was given, or none is announced. */
export function announcedWebSocket(given: URL, { websocket }: Announced): URL | undefined {
  if (websocket === undefined) {
    return undefined;
  }
  // A proxy may have put the relay below a path of its own.
  const url = new URL(`.${websocket.path}`, given);
  url.search = given.search;
  return url.pathname === given.pathname ? undefined : url;
}

/** Asks the relay of a WebSocket; `undefined` if there is no answer of a relay. One that does not know the question has no other. */
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

/** The transports in an answer, without those that nobody can open; `undefined` if it is none of a relay. */
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

/** The close code and the text in an answer that refuses. */
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
