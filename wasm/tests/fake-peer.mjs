// A connection whose messages come from the test, without WebAssembly, relay and server.

import { PeerConnection } from "../dist/connection.js";

/** The calls of a peer that a session makes. What the test puts into `events` is what the peer has to tell. */
class FakePeer {
  events = [];
  isOver = false;
  /** Messages longer than this find no room. */
  room = Infinity;

  constructor(owner) {
    owner.peer = this;
  }
  connect() {
    this.events.push({ kind: "connected" });
  }
  disconnect() {
    this.end("local");
  }
  send(bytes) {
    if (!this.canSend(bytes.length)) {
      throw Object.assign(new Error("try again later"), { code: "queue-full" });
    }
  }
  canSend(length) {
    if (this.isOver) {
      throw Object.assign(new Error("not open"), { code: "not-connected" });
    }
    return length <= this.room;
  }
  end(code) {
    this.isOver = true;
    this.events.push({ kind: "ended", code, words: code });
  }
  pollEvent() {
    return this.events.shift();
  }
  handle() {}
  handleTimeout() {}
  pollTransmit() {}
  pollTimeout() {}
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

/** An open connection of a protocol, and what makes things happen on it. */
export async function openFake(protocol) {
  const fake = {};
  const classFor = class {
    constructor() {
      return new FakePeer(fake);
    }
  };
  const webSocket = class extends FakeSocket {
    constructor() {
      super();
      fake.socket = this;
    }
  };
  const url = new URL("ws://relay/ws");
  const settings = { url, protocol, protocolVersion: 6, progressInterval: 0, memory: {}, webSocket };
  const connection = new PeerConnection({ RakNetPeer: classFor, GameProtocolPeer: classFor }, settings);
  fake.socket.dispatchEvent(new Event("open"));
  await connection.opened;
  const wake = () => fake.socket.dispatchEvent(Object.assign(new Event("message"), { data: new ArrayBuffer(1) }));
  return {
    connection,
    peer: fake.peer,
    /** Lets the session look at its peer again. */
    wake,
    /** Messages with these numbers arrive. */
    arrive(...numbers) {
      const message = (number) => ({ kind: "message", bytes: Uint8Array.of(number >> 8, number), reliability: 2, channel: 0 });
      fake.peer.events.push(...numbers.map(message));
      wake();
    },
    /** The server disconnects. */
    end() {
      fake.peer.end("remote");
      wake();
    },
    /** The relay closes the WebSocket. */
    loseRelay() {
      fake.socket.dispatchEvent(Object.assign(new Event("close"), { code: 1006, reason: "" }));
    },
  };
}

/** The number of a message. */
export const numberOf = ({ bytes }) => (bytes[0] << 8) | bytes[1];

/** The whole numbers from `first` to `last`. */
export const range = (first, last) => Array.from({ length: last - first + 1 }, (_, index) => first + index);
