/** What a relay says of its transports, at `/transports`. */

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

/** The transports besides the WebSocket. */
export interface Announced {
  webtransport?: AnnouncedWebTransport;
  webrtc?: AnnouncedWebRtc;
}

/** Asks the relay of a WebSocket; `undefined` if it cannot be reached. One that does not know the question has no other. */
export async function fetchAnnounced(relay: URL, signal: AbortSignal): Promise<Announced | undefined> {
  const url = new URL("transports", relay);
  url.protocol = relay.protocol.replace("ws", "http");
  try {
    const response = await fetch(url, { signal });
    return response.ok ? ((await response.json()) as Announced) : {};
  } catch {
    return undefined;
  }
}
