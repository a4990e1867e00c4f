/** Datagrams over a WebSocket to a relay: one binary message is one datagram. */

import { RakwireError } from "../errors.js";
import type { WebSocketConstructor, WebSocketLike } from "../types.js";

/** The limit for buffered bytes in the WebSocket: congestion control cannot hold them back any more. */
const MAX_BUFFERED_BYTES = 64 * 1024;
const NORMAL_CLOSURE = 1000;

/** How a WebSocket ended. */
export interface RelayClose {
  code: number;
  reason: string;
}

/** The callbacks of a transport. */
export interface TransportEvents {
  onOpen(): void;
  onDatagram(datagram: Uint8Array): void;
  onClose(close: RelayClose, wasOpen: boolean): void;
}

/** A WebSocket to a relay that starts to open when it is constructed. */
export class WebSocketTransport {
  readonly #socket: WebSocketLike;
  #isOpen = false;
  #events: TransportEvents | undefined;

  constructor(url: URL, Socket: WebSocketConstructor, events: TransportEvents) {
    this.#events = events;
    this.#socket = new Socket(url.href);
    this.#socket.binaryType = "arraybuffer";
    this.#socket.addEventListener("open", () => {
      this.#isOpen = true;
      this.#events?.onOpen();
    });
    this.#socket.addEventListener("message", (event: { data: unknown }) => {
      if (event.data instanceof ArrayBuffer) {
        this.#events?.onDatagram(new Uint8Array(event.data));
      }
    });
    this.#socket.addEventListener("close", (event: RelayClose) => this.#onClose(event));
    // Every error is followed by a close event, which has more details.
    this.#socket.addEventListener("error", () => undefined);
  }

  get hasRoom(): boolean {
    return this.#isOpen && this.#socket.bufferedAmount < MAX_BUFFERED_BYTES;
  }

  send(datagram: Uint8Array): void {
    this.#socket.send(datagram);
  }

  /** Closes the WebSocket after its buffered bytes, without further callbacks. */
  close(): void {
    this.#events = undefined;
    this.#isOpen = false;
    this.#socket.close(NORMAL_CLOSURE);
  }

  #onClose({ code, reason }: RelayClose): void {
    const wasOpen = this.#isOpen;
    this.#isOpen = false;
    this.#events?.onClose({ code, reason }, wasOpen);
  }
}

/** The URL of a relay's target. Pages may use http or a relative path for the relay. */
export function relayUrl(url: string | URL, target: string): URL {
  if (typeof target !== "string" || target === "") {
    throw new RakwireError("bad-option", "a target is required: the name of the game server at the relay");
  }
  let relay: URL;
  try {
    relay = new URL(url, globalThis.location?.href);
  } catch (cause) {
    throw new RakwireError("bad-option", `the address of the relay is not a URL: ${url}`, { cause });
  }
  relay.protocol = relay.protocol.replace(/^http/, "ws");
  if (relay.protocol !== "ws:" && relay.protocol !== "wss:") {
    throw new RakwireError("bad-option", `the address of the relay must begin with ws:// or wss://: ${url}`);
  }
  relay.hash = "";
  relay.searchParams.set("target", target);
  return relay;
}

/** The code and the description of the end of a WebSocket. */
export function describeClose(
  url: URL,
  { code, reason }: RelayClose,
  wasOpen: boolean,
): ["relay-closed" | "relay-unreachable", string] {
  if (!wasOpen) {
    return ["relay-unreachable", `the relay at ${url.host} cannot be reached`];
  }
  const description = reason === "" ? `connection to the relay lost (code ${code})` : `relay closed: ${reason} (code ${code})`;
  return ["relay-closed", description];
}
