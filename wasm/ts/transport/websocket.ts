/** Datagrams over a WebSocket to a relay: one binary message is one datagram. */

import { RakwireError } from "../errors.js";
import type { WebSocketConstructor, WebSocketLike } from "../types.js";

/** Bytes that may wait in the WebSocket: what waits there is out of RakNet's hands, and late. */
const MOST_BUFFERED = 64 * 1024;
const NORMAL_CLOSURE = 1000;

/** How a WebSocket ended. */
export interface RelayClose {
  code: number;
  reason: string;
}

/** What a transport tells its owner. */
export interface TransportEvents {
  onOpen(): void;
  onDatagram(datagram: Uint8Array): void;
  onClose(close: RelayClose, wasOpen: boolean): void;
}

/** A WebSocket to a relay that opens as soon as it is made. */
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
    // A close follows every error and says more.
    this.#socket.addEventListener("error", () => undefined);
  }

  get hasRoom(): boolean {
    return this.#isOpen && this.#socket.bufferedAmount < MOST_BUFFERED;
  }

  send(datagram: Uint8Array): void {
    this.#socket.send(datagram);
  }

  /** Closes the WebSocket after what it still holds, and tells nothing more. */
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

/** The address of a relay's target. Pages may name the relay as they name themselves, by http or a path. */
export function relayUrl(url: string | URL, target: string): URL {
  if (typeof target !== "string" || target === "") {
    throw new RakwireError("bad-option", "a target is needed: the name by which the relay knows the game server");
  }
  let relay: URL;
  try {
    relay = new URL(url, globalThis.location?.href);
  } catch (cause) {
    throw new RakwireError("bad-option", `the relay's address is not a URL: ${url}`, { cause });
  }
  relay.protocol = relay.protocol.replace(/^http/, "ws");
  if (relay.protocol !== "ws:" && relay.protocol !== "wss:") {
    throw new RakwireError("bad-option", `the relay's address must begin with ws:// or wss://: ${url}`);
  }
  relay.hash = "";
  relay.searchParams.set("target", target);
  return relay;
}

/** The end of a WebSocket in words. */
export function describeClose({ code, reason }: RelayClose): string {
  return reason === "" ? `connection to the relay lost (code ${code})` : `relay closed: ${reason} (code ${code})`;
}
