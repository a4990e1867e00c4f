// Fake WebTransport sessions and data channels. They forward datagrams between a client and a real server, and add a
// flood of invalid data before each datagram of the server.

import assert from "node:assert/strict";
import { createSocket } from "node:dgram";

import { connect } from "rakwire";

import { LIMIT_MS, nextNumbers, numbered, pattern, startEcho, until } from "./support.mjs";

const OFFERED = {
  webtransport: { port: 4433, path: "/wt", certificate_hashes: [] },
  webrtc: { port: 4433, fingerprint: Array(32).fill("5B").join(":") },
};
/** Control messages: several that a client must ignore, and one valid message. */
const TEXTS = [
  "",
  "{",
  "null",
  "7",
  "[]",
  '"flow"',
  "{}",
  '{"type":"close"}',
  '{"type":"close","code":"4400"}',
  '{"type":"flow"}',
  '{"type":"flow","resume":7,"resume_within_ms":-1}',
  '{"type":"later","more":[1]}',
  "[".repeat(100_000),
  '{"type":"drops","to_client":{"queue_full":19},"to_server":null}',
];

/** Returns datagrams of various lengths that the client must recognise as invalid. */
function nonsense(protocol) {
  const first = protocol.name === "RakNet" ? 0x84 : 0x82;
  const lengths = [0, 1, 2, 5, 100, 505, 1_024, 1_400, 65_535, 65_536, 300_000];
  return lengths.map((length) => Uint8Array.from(pattern(length).fill(first, 0, 1)));
}

/** Forwards datagrams to a server. Delivers a flood before each datagram of the server. */
function passTo(t, echo, protocol, deliver) {
  const udp = createSocket("udp4");
  t.after(() => udp.close());
  const flood = nonsense(protocol);
  udp.on("message", (datagram) => [...flood, Uint8Array.from(datagram)].forEach(deliver));
  const [host, port] = echo.address.split(":");
  // Copied, because the client overwrites the datagram before the operating system has sent it.
  return (datagram) => udp.send(Uint8Array.from(datagram), Number(port), host);
}

/** Replaces the global WebTransport class. */
export function spoilWebTransport(t, echo, protocol) {
  const prefix = "rakwire:";
  const controls = [...TEXTS.map((text) => Buffer.from(prefix + text)), Buffer.from([...Buffer.from(prefix), 0xff, 0xc0])];
  globalThis.WebTransport = class {
    ready = Promise.resolve();
    closed = new Promise(() => undefined);
    constructor() {
      let controller;
      const readable = new ReadableStream({ start: (started) => (controller = started) });
      const send = passTo(t, echo, protocol, (datagram) => [...controls, datagram].forEach((bytes) => controller.enqueue(Uint8Array.from(bytes))));
      const isControl = (datagram) => Buffer.from(datagram).subarray(0, prefix.length).equals(Buffer.from(prefix));
      const writable = new WritableStream({ write: (datagram) => void (isControl(datagram) || send(datagram)) });
      this.datagrams = { readable, writable, maxDatagramSize: 1_200 };
    }
    close() {}
  };
  t.after(() => delete globalThis.WebTransport);
}

class FakeChannel extends EventTarget {
  readyState = "connecting";
  bufferedAmount = 0;
  send = () => undefined;

  open() {
    this.readyState = "open";
    this.dispatchEvent(new Event("open"));
  }

  deliver(data) {
    this.dispatchEvent(Object.assign(new Event("message"), { data }));
  }
}

/** Replaces the global WebRTC classes. */
export function spoilDataChannels(t, echo, protocol) {
  globalThis.RTCPeerConnection = class extends EventTarget {
    connectionState = "connected";
    #channels = { control: new FakeChannel(), datagrams: new FakeChannel() };
    constructor() {
      super();
      const { control, datagrams } = this.#channels;
      datagrams.send = passTo(t, echo, protocol, (datagram) => {
        [...TEXTS, new ArrayBuffer(8)].forEach((text) => control.deliver(text));
        ["a text", new Blob(["a blob"]), null].forEach((data) => datagrams.deliver(data));
        datagrams.deliver(datagram.buffer);
      });
    }
    createDataChannel(name) {
      return this.#channels[name];
    }
    async createOffer() {
      return { type: "offer", sdp: "a=mid:0\r\n" };
    }
    async setLocalDescription() {}
    async setRemoteDescription() {}
    async addIceCandidate() {
      Object.values(this.#channels).forEach((channel) => channel.open());
    }
    close() {}
  };
  t.after(() => delete globalThis.RTCPeerConnection);
}

/** Checks that a connection over a transport that `spoil` floods still exchanges messages. */
export async function outlives(t, protocol, transport, spoil) {
  const echo = await startEcho(t, ...protocol.echo);
  spoil(t, echo, protocol);
  t.mock.method(globalThis, "fetch", async () => new Response(JSON.stringify(OFFERED)));
  const connection = await connect("ws://relay.invalid/ws", { target: "game", transport, timeoutMs: LIMIT_MS, ...protocol.options });
  assert.equal(connection.transport, transport);
  for (let number = 0; number < 40; number++) {
    connection.send(numbered(number), { reliability: "reliable" });
    // Sends the messages one at a time, so that each has its own datagram and flood.
    assert.deepEqual(await nextNumbers(connection, 1), [number]);
  }
  await until(() => connection.stats().relayDrops.toClient.queueFull === 19, "the client has the highest drop count of the relay");
  const { drops } = connection.stats();
  assert.ok(Object.values(drops).reduce((sum, count) => sum + count, 0) > 100, JSON.stringify(drops));
  assert.equal((await connection.close()).code, "local");
}
