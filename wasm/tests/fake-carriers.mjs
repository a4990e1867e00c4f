// Fake carriers and a fake clock, and a transport to a relay over them.

import { carrierKinds } from "../dist/transport/race.js";
import { RelayTransport } from "../dist/transport/relay.js";

/** A clock that a test advances. */
export class FakeClock {
  #now = 0;
  #timers = new Map();
  #last = 0;

  now() {
    return this.#now;
  }

  set(callback, ms) {
    this.#timers.set(++this.#last, { callback, at: this.#now + ms });
    return this.#last;
  }

  clear(timer) {
    this.#timers.delete(timer);
  }

  /** Advances the time without firing timers. */
  block(ms) {
    this.#now += ms;
  }

  async pass(ms) {
    const end = this.#now + ms;
    for (;;) {
      await settled();
      const [next] = [...this.#timers].filter(([, { at }]) => at <= end).sort(([, one], [, other]) => one.at - other.at);
      if (next === undefined) {
        this.#now = end;
        return;
      }
      this.#timers.delete(next[0]);
      this.#now = Math.max(this.#now, next[1].at);
      next[1].callback();
    }
  }
}

/** Resolves when all pending microtasks have run. */
export const settled = () => new Promise((resolve) => setImmediate(resolve));

/** A carrier that the test opens and closes. */
export class FakeCarrier {
  hasRoom = true;
  bufferedAmount = 0;
  longestDatagram = Infinity;
  isClosed = false;
  requests = 0;
  sent = [];

  constructor(name, events, request) {
    this.name = name;
    this.events = events;
    this.request = request;
  }

  send(datagram) {
    this.sent.push(datagram.length);
  }

  requestFlow() {
    this.requests += 1;
  }

  close() {
    this.isClosed = true;
  }

  open() {
    this.events.onOpen();
  }

  /** Closes the carrier from the side of the relay. */
  end(code, reason = "") {
    this.isClosed = true;
    this.events.onClose({ code, reason });
  }

  /** Sends the control message `flow` from the relay. */
  nameFlow(resumed) {
    this.events.onControl(JSON.stringify({ type: "flow", resume: "secret", resume_within_ms: 30_000, resumed }));
  }
}

/** Starts a transport over fake carriers, by default WebTransport and the WebSocket. */
export function startTransport(t, more = {}) {
  const real = { ...carrierKinds };
  const carriers = [];
  for (const name of ["webtransport", "webrtc", "websocket"]) {
    carrierKinds[name] = {
      isSupported: () => true,
      open: (request, events) => {
        carriers.push(new FakeCarrier(name, events, request));
        return carriers.at(-1);
      },
    };
  }
  t.after(() => Object.assign(carrierKinds, real));
  const clock = new FakeClock();
  const events = [];
  /** One entry for each carrier to which the flow was assigned: true for a stream, which loses no datagrams. */
  const streams = [];
  const settings = { url: "ws://relay.invalid/ws?target=game", carriers: ["webtransport", "websocket"], resume: true, ...more };
  const transport = new RelayTransport(
    settings,
    {
      onTransportOpen: () => events.push("open"),
      onCarrier: (isStream) => streams.push(isStream),
      onDatagram: (datagram) => events.push(datagram.length),
      onInterrupted: () => events.push("interrupted"),
      onResumed: () => events.push("resumed"),
      onRelayNotice: () => events.push("notice"),
      onClose: ({ code, relayCode }) => events.push(`${code} ${relayCode ?? ""}`),
    },
    clock,
  );
  return { transport, carriers, clock, events, streams };
}
