// A client and a server in one thread that exchange datagrams in memory. The clock is fake, so that every run is
// identical.

import { readFile } from "node:fs/promises";

import { CheckedConnection } from "../dist/connection.js";
import { createPeer } from "../dist/peer.js";
import { instantiate, raknetClasses, serverClasses } from "../dist/rust.js";
import { ServerPeers } from "../dist/server/peers.js";
import { UdpServer } from "../dist/server/server.js";
import { ADDRESS } from "../dist/server/socket.js";
import { Session } from "../dist/session.js";

const LONGEST = 2_048;
const SLOTS = 64;
const NO_TIMER = 0;

/** Replaces the clock, timers and microtasks without allocating objects. */
export class PlayedClock {
  #now = 1_000;
  #timers = new Map();
  #last = NO_TIMER;
  #tasks = [];

  constructor() {
    performance.now = () => this.#now;
    globalThis.queueMicrotask = (task) => void this.#tasks.push(task);
    globalThis.clearTimeout = (timer) => void this.#timers.delete(timer);
    globalThis.setTimeout = (callback, ms) => {
      this.#timers.set(++this.#last, { callback, at: this.#now + ms });
      return this.#last;
    };
  }

  /** Runs pending microtasks; returns true if there were any. */
  runTasks() {
    const isBusy = this.#tasks.length > 0;
    for (let task = this.#tasks.shift(); task !== undefined; task = this.#tasks.shift()) {
      task();
    }
    return isBusy;
  }

  /** Advances by one millisecond and fires the timers that are due. */
  tick() {
    this.#now += 1;
    this.#timers.forEach(({ callback, at }, timer) => {
      if (at <= this.#now && this.#timers.delete(timer)) {
        callback();
      }
    });
  }
}

/** One direction of a wire: copies datagrams with their lengths into preallocated memory. */
class Direction {
  #slots = Array.from({ length: SLOTS }, () => new Uint8Array(LONGEST));
  #lengths = new Array(SLOTS).fill(0);
  #first = 0;
  #end = 0;
  #before;
  onDatagram = () => undefined;

  constructor(before) {
    this.#before = before;
  }

  put(datagram) {
    if (this.#end - this.#first === SLOTS) {
      throw new Error(`the wire holds at most ${SLOTS} datagrams`);
    }
    const slot = this.#end++ % SLOTS;
    this.#slots[slot].set(datagram, this.#before);
    this.#lengths[slot] = this.#before + datagram.length;
  }

  /** Delivers datagrams in transit; returns true if there were any. */
  deliver() {
    const isBusy = this.#first < this.#end;
    while (this.#first < this.#end) {
      const slot = this.#first++ % SLOTS;
      this.onDatagram(this.#slots[slot].subarray(0, this.#lengths[slot]));
    }
    return isBusy;
  }
}

async function load(name, classes) {
  return instantiate(await WebAssembly.compile(await readFile(new URL(`../pkg/${name}.wasm`, import.meta.url))), classes);
}

/** Opens a RakNet connection. Returns both of its ends, and `step`, which advances the clock by one millisecond. */
export async function openInMemory() {
  const [clientWasm, serverWasm] = [await load("raknet", raknetClasses), await load("server", serverClasses)];
  const clock = new PlayedClock();
  const [forth, back] = [new Direction(ADDRESS), new Direction(0)];
  const step = () => {
    clock.tick();
    while ([clock.runTasks(), forth.deliver(), back.deliver()].includes(true));
  };
  const socket = {
    name: "udp",
    hasRoom: true,
    sendsAtOnce: true,
    unsent: 0,
    address: { host: "127.0.0.1", port: 1 },
    listen: (onDatagram) => (forth.onDatagram = onDatagram),
    send: (datagram) => back.put(datagram.subarray(ADDRESS)),
    close: () => undefined,
  };
  const none = new Uint8Array(0);
  const settings = { maxConnections: 1, blocks: 0, blockSize: 0, silenceTimeoutMs: 0, password: none, advertisement: none };
  const server = new UdpServer(new ServerPeers(serverWasm, settings), socket, 1);
  const peerSettings = { protocol: "raknet", protocolVersion: 6, progressInterval: 0, password: none, memory: {}, silenceTimeoutMs: 0, outgoingLimit: 0 };
  const open = (_, events) => {
    back.onDatagram = (datagram) => events.onDatagram(datagram);
    globalThis.queueMicrotask(() => events.onTransportOpen());
    return { name: "udp", dropped: 0, hasRoom: true, bufferedAmount: 0, sendsAtOnce: true, send: (datagram) => forth.put(datagram), close: () => undefined };
  };
  const client = new CheckedConnection((owner) => new Session(createPeer(clientWasm, peerSettings), { ...peerSettings, transport: {} }, owner, open));
  let [isOpen, accepted] = [false, undefined];
  client.opened.then(() => (isOpen = true));
  server.accept().then((connection) => (accepted = connection));
  for (let steps = 0; !isOpen || accepted === undefined; steps++) {
    if (steps > 10_000) {
      throw new Error("the connection did not open within 10,000 steps");
    }
    step();
    await undefined;
  }
  return { client, accepted, step };
}
