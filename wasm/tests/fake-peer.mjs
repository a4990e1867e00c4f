// A connection with messages from the test, without WebAssembly, relay and server.

import { CheckedConnection } from "../dist/connection.js";
import { RakwireError } from "../dist/errors.js";
import { reliabilityName } from "../dist/sending.js";
import { Session } from "../dist/session.js";

/** The methods of a peer that a session calls. The test puts events of the peer into `events`. */
class FakePeer {
  events = [];
  isOver = false;
  /** The length in bytes above which messages are refused with `queue-full`. */
  room = Infinity;

  connect() {
    this.events.push((callbacks) => callbacks.onConnected());
  }
  disconnect() {
    this.end("local");
  }
  send(bytes) {
    if (!this.canSend(bytes.length)) {
      throw new RakwireError("queue-full", "try again later");
    }
  }
  canSend(length) {
    if (this.isOver) {
      throw new RakwireError("not-connected", "not open");
    }
    return length <= this.room;
  }
  end(code) {
    this.isOver = true;
    this.events.push((callbacks) => callbacks.onEnded(code, code));
  }
  pollEvent(callbacks) {
    const event = this.events.shift();
    event?.(callbacks);
    return event !== undefined;
  }
  setCarrier(isStream) {
    this.isStream = isStream;
  }
  handle() {}
  handleTimeout() {}
  pollTransmit() {}
  pollTimeout() {
    return Infinity;
  }
  stats() {
    return { messagesReceived: 0 };
  }
  free() {}
}

class FakeSocket extends EventTarget {
  bufferedAmount = 0;
  send() {}
  close() {}
}

/** An open connection of a protocol, and functions that cause events on it. */
export async function openFake(protocol) {
  const fake = { peer: new FakePeer() };
  const webSocket = class extends FakeSocket {
    constructor() {
      super();
      fake.socket = this;
    }
  };
  const settings = { protocol, transport: { url: "ws://relay/ws", carriers: ["websocket"], resume: false, webSocket } };
  const connection = new CheckedConnection((owner) => new Session(fake.peer, settings, owner));
  fake.socket.dispatchEvent(new Event("open"));
  await connection.opened;
  const wake = () => fake.socket.dispatchEvent(Object.assign(new Event("message"), { data: new ArrayBuffer(1) }));
  return {
    connection,
    peer: fake.peer,
    /** Makes the session poll its fake peer for events. */
    wake,
    /** Delivers messages with these numbers. */
    arrive(...numbers) {
      const message = (number) => ({ bytes: Uint8Array.of(number >> 8, number), reliability: "reliable", channel: 0 });
      fake.peer.events.push(...numbers.map((number) => (callbacks) => callbacks.onMessage(message(number))));
      wake();
    },
    /** Disconnects from the side of the server. */
    end() {
      fake.peer.end("remote");
      wake();
    },
    /** Closes the WebSocket from the side of the relay. */
    loseRelay() {
      fake.socket.dispatchEvent(Object.assign(new Event("close"), { code: 1006, reason: "" }));
    },
  };
}

/** Two open connections in memory, each the server of the other. */
export async function openPair(protocol) {
  const pair = [await openFake(protocol), await openFake(protocol)];
  pair.forEach((from, index) => {
    const to = pair[1 - index];
    const send = from.peer.send;
    from.peer.send = function (bytes, delivery) {
      send.call(this, bytes, delivery);
      const message = { bytes: bytes.slice(), reliability: reliabilityName(delivery & 7), channel: delivery >> 5 };
      to.peer.events.push((callbacks) => callbacks.onMessage(message));
      queueMicrotask(to.wake);
    };
  });
  return pair;
}

/** The number of a message. */
export const numberOf = ({ bytes }) => (bytes[0] << 8) | bytes[1];

/** The integers from `first` to `last`. */
export const range = (first, last) => Array.from({ length: last - first + 1 }, (_, index) => first + index);
