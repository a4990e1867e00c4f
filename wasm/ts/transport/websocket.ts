/** A WebSocket to a relay: each binary message is a datagram, and each text message is a control message. */

import { RakwireError } from "../errors.js";
import type { WebSocketConstructor, WebSocketLike } from "../types.js";
import { announcedWebSocket } from "./announced.js";
import type { Carrier, CarrierClose, CarrierEvents, CarrierKind, CarrierRequest } from "./carrier.js";
import { CONTROL_PROTOCOL, FLOW_REQUEST, LOST, lost, MAX_BUFFERED_BYTES, NORMAL_CLOSURE } from "./carrier.js";

/** The prefix of the subprotocol that carries a token. Unlike URLs, subprotocols are not logged. */
const TOKEN = "rakwire.token.";

/** Returns the WebSocket class of the caller or of the platform. */
export function readWebSocket(custom: WebSocketConstructor | undefined): WebSocketConstructor {
  const webSocket = custom ?? (globalThis.WebSocket as WebSocketConstructor | undefined);
  if (webSocket === undefined) {
    throw new RakwireError("no-websocket", "there is no global WebSocket; pass one as the option webSocket");
  }
  return webSocket;
}

/**
 * The time in milliseconds to wait for the close event of an open WebSocket after an error. The close event of a
 * WebSocket that never opened contains no further details.
 */
const CLOSE_MS = 1_000;

/**
 * The default path of the WebSocket. If another path cannot be opened, the path in the relay's announcement is tried.
 */
const PATH = "/ws";

/** The parameters of a WebSocket. */
type WebSocketRequest = Pick<CarrierRequest, "url" | "token" | "hasControl" | "webSocket" | "announced">;

export const openWebSocket = (request: WebSocketRequest, events: CarrierEvents): Carrier => new WebSocketCarrier(request, events);

export const webSocket: CarrierKind = {
  isSupported: (custom) => (custom ?? globalThis.WebSocket) !== undefined,
  open: openWebSocket,
};

class WebSocketCarrier implements Carrier {
  readonly longestDatagram = Infinity;
  #socket: WebSocketLike;
  #isOpen = false;
  events: CarrierEvents | undefined;

  constructor(request: WebSocketRequest, events: CarrierEvents) {
    this.events = events;
    const { url } = request;
    const onLost = (close: CarrierClose): void => void this.#openElsewhere(request, close);
    this.#socket = this.#open(request, url, url.pathname.endsWith(PATH) ? undefined : onLost);
  }

  /** Opens a WebSocket. If that fails, calls `onLost` if present; otherwise closes the carrier. */
  #open({ token, hasControl, webSocket }: WebSocketRequest, url: URL, onLost?: (close: CarrierClose) => void): WebSocketLike {
    // The relay must choose one of the offered subprotocols, or browsers close the WebSocket.
    const protocols = [
      ...(hasControl || token !== undefined ? [CONTROL_PROTOCOL] : []),
      ...(token !== undefined ? [TOKEN + token] : []),
    ];
    const socket = new (readWebSocket(webSocket))(url.href, protocols);
    socket.binaryType = "arraybuffer";
    socket.addEventListener("open", () => {
      this.#isOpen = true;
      this.events?.onOpen();
    });
    socket.addEventListener("message", ({ data }: { data: unknown }) => {
      if (data instanceof ArrayBuffer) {
        this.events?.onDatagram(new Uint8Array(data));
      } else if (typeof data === "string") {
        this.events?.onControl(data);
      }
    });
    let hasEnded = false;
    const end = (close: CarrierClose): void => {
      if (!hasEnded) {
        hasEnded = true;
        // Deno reports the code 0 for a WebSocket that never opened.
        const isLost = close.code === 0 || close.code === LOST;
        const ended = { code: isLost ? LOST : close.code, reason: close.reason };
        if (isLost && !this.#isOpen && onLost !== undefined) {
          onLost(ended);
        } else {
          this.#end(ended);
        }
      }
    };
    socket.addEventListener("close", end);
    // By the standard, a close event with more details follows an error event. It is missing in Node 22, and in
    // Chromium if the content security policy forbids the URL.
    socket.addEventListener("error", () => {
      setTimeout(() => end(lost()), this.#isOpen ? CLOSE_MS : 0);
    });
    return socket;
  }

  /** Tries the announced path, because the caller's URL may contain a wrong path. */
  async #openElsewhere(request: WebSocketRequest, close: CarrierClose): Promise<void> {
    if (this.events === undefined) {
      return;
    }
    const announced = await request.announced();
    const url = announcedWebSocket(request.url, announced);
    if (url === undefined || this.events === undefined) {
      this.#end(announced.refused ?? close);
      return;
    }
    try {
      this.#socket = this.#open(request, url);
    } catch (error) {
      this.#end(lost(error));
    }
  }

  get hasRoom(): boolean {
    return this.#isOpen && this.#socket.bufferedAmount < MAX_BUFFERED_BYTES;
  }

  get bufferedAmount(): number {
    return this.#socket.bufferedAmount;
  }

  send(datagram: Uint8Array): void {
    this.#socket.send(datagram);
  }

  requestFlow(): void {
    this.#socket.send(FLOW_REQUEST);
  }

  close(): void {
    this.events = undefined;
    this.#isOpen = false;
    this.#socket.close(NORMAL_CLOSURE);
  }

  #end(close: CarrierClose): void {
    const events = this.events;
    this.events = undefined;
    this.#isOpen = false;
    events?.onClose(close);
  }
}

/**
 * Opens a carrier. If it cannot be created, for example because of the content security policy, returns `undefined` and
 * reports the failure asynchronously, as for other carriers.
 */
export function attempt(open: (events: CarrierEvents) => Carrier, events: CarrierEvents): Carrier | undefined {
  try {
    return open(events);
  } catch (error) {
    queueMicrotask(() => events.onClose(lost(error)));
    return undefined;
  }
}
