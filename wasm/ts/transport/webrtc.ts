/**
 * WebRTC data channels to a relay without signalling. The page writes the session description of the relay itself, from
 * the relay's fingerprint, addresses and port. One channel carries control messages; the other carries unordered
 * datagrams without retransmission.
 */

import type { Carrier, CarrierClose, CarrierEvents, CarrierKind, CarrierRequest } from "./carrier.js";
import { endCarrier, FLOW_REQUEST, LONGEST_DATAGRAM, lost, MAX_BUFFERED_BYTES } from "./carrier.js";
import { readText } from "./flow.js";
import { loopbackHosts } from "./local-network.js";

/**
 * The prefix of the ICE user name of every relay. The password of the page follows, with which the relay verifies the
 * origin of connectivity checks. The ICE password of the relay is its fingerprint.
 */
const USERNAME = "rakwire/";
/** The maximum message length in bytes that the relay accepts. */
const LONGEST_MESSAGE = 16_384;
/** The time limit in milliseconds for the browser to find a path to the relay. */
const OPEN_MS = 10_000;
/** 32 bytes in hexadecimal digits, with or without colons. */
const FINGERPRINT = /^([0-9a-f]{2}:?){31}[0-9a-f]{2}$/i;

/** The parameters of a relay that its session description contains. */
export interface Peer {
  fingerprint: string;
  addresses: readonly string[];
  port: number;
}

export const webRtc: CarrierKind = {
  isSupported: () => typeof RTCPeerConnection === "function",
  open: (request, events) => new WebRtcCarrier(request, events),
};

/** Returns true if a text has the format of a certificate fingerprint. */
export function isFingerprint(text: string): boolean {
  return FINGERPRINT.test(text);
}

class WebRtcCarrier implements Carrier {
  readonly longestDatagram = LONGEST_DATAGRAM;
  #peer: RTCPeerConnection | undefined;
  #control: RTCDataChannel | undefined;
  #datagrams: RTCDataChannel | undefined;
  events: CarrierEvents | undefined;
  readonly #timer: ReturnType<typeof setTimeout>;

  constructor(request: CarrierRequest, events: CarrierEvents) {
    this.events = events;
    this.#timer = setTimeout(() => endCarrier(this, lost("no way to the relay was found")), OPEN_MS);
    this.#open(request).catch((error: unknown) => endCarrier(this, lost(error)));
  }

  get hasRoom(): boolean {
    return this.#datagrams?.readyState === "open" && this.#datagrams.bufferedAmount < MAX_BUFFERED_BYTES;
  }

  get bufferedAmount(): number {
    return this.#datagrams?.bufferedAmount ?? 0;
  }

  send(datagram: Uint8Array): void {
    if (this.#datagrams?.readyState === "open") {
      this.#datagrams.send(datagram as Uint8Array<ArrayBuffer>);
    }
  }

  requestFlow(): void {
    this.#say(FLOW_REQUEST);
  }

  close(): void {
    this.events = undefined;
    clearTimeout(this.#timer);
    this.#peer?.close();
  }

  async #open(request: CarrierRequest): Promise<void> {
    const relay = await findPeer(request);
    if (this.events === undefined) {
      return;
    }
    if ("code" in relay) {
      endCarrier(this, relay);
      return;
    }
    const peer = new RTCPeerConnection();
    this.#peer = peer;
    peer.addEventListener("connectionstatechange", () => {
      if (peer.connectionState === "failed") {
        endCarrier(this, lost());
      }
    });
    const control = peer.createDataChannel("control", { negotiated: true, id: 0 });
    const datagrams = peer.createDataChannel("datagrams", { negotiated: true, id: 1, ordered: false, maxRetransmits: 0 });
    this.#control = control;
    this.#datagrams = datagrams;
    datagrams.binaryType = "arraybuffer";
    const opened = Promise.all([control, datagrams].map((channel) => this.#follow(channel)));
    control.addEventListener("message", ({ data }: MessageEvent<unknown>) => this.#onControl(String(data)));
    datagrams.addEventListener("message", ({ data }: MessageEvent<unknown>) => {
      if (data instanceof ArrayBuffer) {
        this.events?.onDatagram(new Uint8Array(data));
      }
    });
    const offer = await peer.createOffer();
    await peer.setLocalDescription(offer);
    await peer.setRemoteDescription({ type: "answer", sdp: answer(offer.sdp ?? "", relay) });
    for (const candidate of candidates(relay)) {
      // The browser may reject one candidate and still use the others.
      await peer.addIceCandidate({ candidate, sdpMLineIndex: 0 }).catch(() => undefined);
    }
    await opened;
    clearTimeout(this.#timer);
    const { url, token } = request;
    this.#say(JSON.stringify({ ...Object.fromEntries(url.searchParams), token, type: "open" }));
    this.events?.onOpen();
  }

  /** Resolves when a channel opens. Closes the carrier when the channel closes. */
  #follow(channel: RTCDataChannel): Promise<void> {
    channel.addEventListener("close", () => endCarrier(this, lost()));
    return new Promise((resolve) => channel.addEventListener("open", () => resolve()));
  }

  #say(text: string): void {
    if (this.#control?.readyState === "open") {
      this.#control.send(text);
    }
  }

  #onControl(text: string): void {
    const close = readClose(text);
    if (close === undefined) {
      this.events?.onControl(text);
    } else {
      endCarrier(this, close);
    }
  }
}

/** Reads the close code and reason from a control message; `undefined` if it has none. */
function readClose(text: string): { code: number; reason: string } | undefined {
  const { type, code, reason } = readText(text) as { type?: unknown; code?: unknown; reason?: unknown };
  return type === "close" && typeof code === "number" ? { code, reason: String(reason ?? "") } : undefined;
}

/**
 * Takes the parameters of the relay from the request or its announcement. Returns a close if the relay refuses this
 * page.
 */
async function findPeer({ url, fingerprint, announced }: CarrierRequest): Promise<Peer | CarrierClose> {
  const hosts = loopbackHosts(url.hostname);
  const own = (hosts.length > 0 ? hosts : [url.hostname]).map((host) => host.replace(/^\[|\]$/g, ""));
  if (fingerprint !== undefined) {
    return { fingerprint, addresses: own, port: Number(url.port) || (url.protocol === "wss:" ? 443 : 80) };
  }
  const { webrtc: offer, refused } = await announced();
  if (refused !== undefined) {
    return refused;
  }
  if (offer === undefined || !isFingerprint(offer.fingerprint)) {
    throw new Error("the relay has no data channels");
  }
  const { addresses = [] } = offer;
  return { fingerprint: offer.fingerprint, addresses: addresses.length > 0 ? addresses : own, port: offer.port };
}

/** Writes the session description of a relay as the answer to an offer. */
export function answer(offer: string, { fingerprint }: Peer): string {
  const [, mid = "0"] = /^a=mid:(\S+)/m.exec(offer) ?? [];
  const [, password = ""] = /^a=ice-pwd:(\S+)/m.exec(offer) ?? [];
  const digits = fingerprint.replaceAll(":", "");
  return `v=0
o=- 0 0 IN IP4 0.0.0.0
s=-
t=0 0
a=ice-lite
a=group:BUNDLE ${mid}
m=application 9 UDP/DTLS/SCTP webrtc-datachannel
c=IN IP4 0.0.0.0
a=mid:${mid}
a=ice-ufrag:${USERNAME}${password}
a=ice-pwd:${digits.toLowerCase()}
a=fingerprint:sha-256 ${digits.toUpperCase().replace(/..(?=.)/g, "$&:")}
a=setup:passive
a=sctp-port:5000
a=max-message-size:${LONGEST_MESSAGE}
`.replaceAll("\n", "\r\n");
}

/** Returns the ICE candidates of a relay. */
export function candidates({ addresses, port }: Peer): string[] {
  // The first candidate has the highest priority. Each needs its own foundation.
  return addresses.map((address, index) => `candidate:${index + 1} 1 udp ${2_130_706_431 - index} ${address} ${port} typ host`);
}
