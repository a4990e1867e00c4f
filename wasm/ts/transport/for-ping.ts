/** What carries pings: to a relay a WebSocket, which every relay has, without the race of all carriers. */

import type { PingOptions } from "../types.js";
import type { Announced } from "./announced.js";
import { fetchAnnounced } from "./announced.js";
import { attempt } from "./attempt.js";
import type { CarrierEvents } from "./carrier.js";
import { describeClose } from "./close.js";
import { checkToken, targetUrl } from "./target.js";
import { PLATFORM_TIMERS } from "./timers.js";
import type { Transport, TransportEvents } from "./transport.js";
import { directTransport } from "./transport.js";
import { openWebSocket, readWebSocket } from "./websocket.js";

type PingEvents = Pick<TransportEvents, "onOpen" | "onDatagram" | "onClose">;

/** Checks the options, and returns what opens the way to the server. */
export function openForPing(address: string | URL, options: PingOptions): (events: PingEvents) => Pick<Transport, "send" | "close"> {
  const { target, token } = options;
  const url = targetUrl(address, target);
  const direct = directTransport(url);
  if (direct !== undefined) {
    const nothing = (): void => undefined;
    const others = { onInterrupted: nothing, onResumed: nothing, onRelayNotice: nothing };
    return (events) => direct({ url: url.href, carriers: [], resume: false }, { ...others, ...events });
  }
  checkToken(token);
  const webSocket = readWebSocket(options.webSocket);
  return (events) => {
    const question = new AbortController();
    const announced = async (): Promise<Announced> => (await fetchAnnounced(url, question.signal, PLATFORM_TIMERS)) ?? {};
    const request = { url, token, hasControl: false, webSocket, announced };
    const carrier = attempt((told) => openWebSocket(request, told), carrierEvents(url, events));
    return {
      send: (datagram) => carrier.send(datagram),
      close() {
        // What is asked of the relay ends with the ping.
        question.abort();
        carrier.close();
      },
    };
  };
}

/** The events of a carrier as those of a transport. */
function carrierEvents(url: URL, { onOpen, onDatagram, onClose }: PingEvents): CarrierEvents {
  let wasOpen = false;
  return {
    onOpen() {
      wasOpen = true;
      onOpen();
    },
    onDatagram,
    onControl: () => undefined,
    onClose: (close) => onClose(describeClose(url, close, wasOpen)),
  };
}
