/** A WebSocket to a relay: one binary message is one datagram, and control messages are text. */

import { RakwireError } from "../errors.js";
import type { WebSocketConstructor, WebSocketLike } from "../types.js";
import { announcedWebSocket } from "./announced.js";
import type { Carrier, CarrierEvents, CarrierKind, CarrierRequest } from "./carrier.js";
import { CONTROL_PROTOCOL, FLOW_REQUEST, MAX_BUFFERED_BYTES } from "./carrier.js";
import type { CarrierClose } from "./close.js";
import { LOST, lost, NORMAL_CLOSURE } from "./close.js";

/** What a token is preceded by among the subprotocols, where no log has it. */
const TOKEN = "rakwire.token.";

/** The WebSocket class that the caller gives or the platform has. */
export function readWebSocket(given: WebSocketConstructor | undefined): WebSocketConstructor {
  const webSocket = given ?? (globalThis.WebSocket as WebSocketConstructor | undefined);
  if (webSocket === undefined) {
    throw new RakwireError("no-websocket", "there is no global WebSocket; give one as the option webSocket");
  }
  return webSocket;
}

/** How long after an error an open WebSocket may take to say how it has ended; one that was never open has nothing to say. */
const CLOSE_MS = 1_000;

/** The path at which a relay has its WebSocket. One that cannot be opened elsewhere is sought where the relay announces it. */
const PATH = "/ws";

/** What a WebSocket is opened for. */
type WebSocketRequest = Pick<CarrierRequest, "url" | "token" | "hasControl" | "webSocket" | "announced">;

export const openWebSocket = (request: WebSocketRequest, events: CarrierEvents): Carrier => new WebSocketCarrier(request, events);

export const webSocket: CarrierKind = {
  isThere: (given) => (given ?? globalThis.WebSocket) !== undefined,
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

  /** Opens a WebSocket; with `onLost` that is called in place of the end of one that could not be opened. */
  #open({ token, hasControl, webSocket }: WebSocketRequest, url: URL, onLost?: (close: CarrierClose) => void): WebSocketLike {
    // A relay that is offered a subprotocol has to choose one, or browsers close the WebSocket.
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
        // Deno has the code 0 for a WebSocket that was never open.
        const isLost = close.code === 0 || close.code === LOST;
        const told = { code: isLost ? LOST : close.code, reason: close.reason };
        if (isLost && !this.#isOpen && onLost !== undefined) {
          onLost(told);
        } else {
          this.#end(told);
        }
      }
    };
    socket.addEventListener("close", end);
    // A close event, which has more details, follows an error by the standard, but not in Node 22, nor in Chromium if the policy
    // of the page forbids the URL.
    socket.addEventListener("error", () => {
      setTimeout(() => end(lost()), this.#isOpen ? CLOSE_MS : 0);
    });
    return socket;
  }

  /** The path of the URL may be another one than the relay's. */
  async #openElsewhere(request: WebSocketRequest, close: CarrierClose): Promise<void> {
    if (this.events === undefined) {
      return;
    }
    const said = await request.announced();
    const url = announcedWebSocket(request.url, said);
    if (url === undefined || this.events === undefined) {
      this.#end(said.refused ?? close);
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
 * Opens a carrier. One that cannot be made, as a WebSocket that the policy of the page forbids, is `undefined` and fails a moment later,
 * as others do.
 */
export function attempt(open: (events: CarrierEvents) => Carrier, events: CarrierEvents): Carrier | undefined {
  try {
    return open(events);
  } catch (error) {
    queueMicrotask(() => events.onClose(lost(error)));
    return undefined;
  }
}
