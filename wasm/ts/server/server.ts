/** A server: its socket, timers and connections. */

import { CheckedConnection } from "../connection.js";
import { RakwireError } from "../errors.js";
import { guarded } from "../events.js";
import { Loop } from "../loop.js";
import { checkNames, SEND_OPTIONS, WAIT_OPTIONS } from "../options.js";
import type { SessionSettings } from "../options.js";
import type { LoopCallbacks, SessionLike, SessionLoop, SessionOwner } from "../session.js";
import { Session } from "../session.js";
import type { Transport } from "../transport/transport.js";
import type { WaitOptions } from "../waits.js";
import { ASYNC_DISPOSE, beforeAbort, deferred, WaitList } from "../waits.js";
import type { ServerPeers } from "./peers.js";
import { MADE } from "./peers.js";
import type { ServerSocket } from "./socket.js";
import type { Broadcast, BroadcastOptions, ListenOptions, RefusedClient, Server, ServerConnection, ServerStats } from "./types.js";

/** A connection, and the loop callbacks of its session. */
interface Entry {
  connection: AcceptedConnection;
  session: Session;
  onEvents: LoopCallbacks[0];
  onError: LoopCallbacks[1];
  onRun: LoopCallbacks[2];
}

/**
 * A placeholder for the transport of a connection, because all connections send and receive through the server's
 * socket.
 */
const SHARED: Transport = {
  name: "udp",
  dropped: 0,
  hasRoom: true,
  bufferedAmount: 0,
  send: () => undefined,
  close: () => undefined,
};
const SETTINGS: SessionSettings = { ...MADE, transport: { url: "", carriers: [], resume: false } };

export class UdpServer implements Server {
  readonly address: { readonly host: string; readonly port: number };
  readonly closed: Promise<void>;

  readonly #peers: ServerPeers;
  readonly #socket: ServerSocket;
  readonly #maxConnections: number;
  readonly #onRefused: ListenOptions["onRefused"];
  readonly #loop: Loop;
  readonly #closed = deferred<void>();
  /** The connections by slot. */
  readonly #entries = new Map<number, Entry>();
  /** Slots of sessions that stopped handling events because their receive queue was full, and can continue. */
  readonly #scheduled = new Set<number>();
  /** Slots to check at the end of each run, because freed send memory may cause no event. */
  readonly #watched = new Set<number>();
  readonly #waiting: ServerConnection[] = [];
  readonly #accepting = new WaitList<ServerConnection | undefined>();
  #forgotten = 0;
  #isClosing = false;
  #isOver = false;

  constructor(peers: ServerPeers, socket: ServerSocket, maxConnections: number, onRefused?: ListenOptions["onRefused"]) {
    this.#peers = peers;
    this.#socket = socket;
    this.#maxConnections = maxConnections;
    this.#onRefused = onRefused;
    this.address = socket.address;
    this.closed = this.#closed.promise;
    this.#loop = new Loop(
      peers.all,
      socket,
      () => this.#handleEvents(),
      (thrown) => this.#fail(thrown),
      () => this.#onRun(),
    );
    socket.listen((datagram) => this.#onDatagram(datagram), (error) => this.#fail(error));
  }

  async accept(options: WaitOptions = {}): Promise<ServerConnection | undefined> {
    checkNames(options, WAIT_OPTIONS);
    const waits = this.#accepting.add(options.signal);
    this.#giveOut();
    return waits.promise;
  }

  async *[Symbol.asyncIterator](): AsyncIterator<ServerConnection> {
    for (let connection = await this.accept(); connection !== undefined; connection = await this.accept()) {
      yield connection;
    }
  }

  connections(): ServerConnection[] {
    return [...this.#entries.values()].map(({ connection }) => connection);
  }

  broadcast(bytes: Uint8Array, broadcastOptions: BroadcastOptions = {}): Broadcast {
    const { except, ...options } = broadcastOptions;
    checkNames(options, SEND_OPTIONS);
    let sent = 0;
    const refused: ServerConnection[] = [];
    for (const connection of this.connections()) {
      if (connection === except) {
        continue;
      }
      try {
        connection.send(bytes, options);
        sent += 1;
      } catch (error) {
        const code = error instanceof RakwireError ? error.code : undefined;
        if (code === "queue-full") {
          refused.push(connection);
        } else if (code !== "not-connected") {
          throw error;
        }
      }
    }
    return { sent, refused };
  }

  stats(): ServerStats {
    return {
      connections: this.#entries.size,
      connectionsEvicted: this.#forgotten,
      datagramsUnsent: this.#socket.unsent,
      ...(this.#isOver ? { bytesSent: 0, bytesReceived: 0, drops: {} } : this.#peers.stats()),
    };
  }

  async close(options: WaitOptions = {}): Promise<void> {
    const { signal } = options;
    checkNames(options, WAIT_OPTIONS);
    if (!this.#isClosing) {
      this.#isClosing = true;
      void this.#closeAll().then(() => this.#end());
    }
    return beforeAbort(signal, this.closed);
  }

  /**
   * Closes the open connections, and then those that opened during these closes. Connections that open later close
   * with the server.
   */
  async #closeAll(): Promise<void> {
    for (let rounds = 0; rounds < 2; rounds++) {
      await Promise.all(this.connections().map((connection) => connection.close()));
    }
  }

  async [ASYNC_DISPOSE](): Promise<void> {
    await this.close();
  }

  #onDatagram(datagram: Uint8Array): void {
    if (this.#isOver) {
      return;
    }
    const now = performance.now();
    try {
      this.#peers.all.handle(datagram, now);
    } catch (thrown) {
      this.#fail(thrown);
    }
    this.#loop.run(now);
  }

  #handleEvents(): void {
    for (let slot = this.#peers.pollReadable(); slot !== undefined; slot = this.#isOver ? undefined : this.#peers.pollReadable()) {
      this.#handleEventsOf(slot, this.#entries.get(slot) ?? this.#open(slot));
    }
    for (const slot of this.#scheduled) {
      this.#scheduled.delete(slot);
      this.#handleEventsOf(slot, this.#entries.get(slot));
    }
  }

  /** Handles the events of a connection. An error closes only that connection. */
  #handleEventsOf(slot: number, entry: Entry | undefined): void {
    this.#watched.add(slot);
    try {
      entry?.onEvents();
    } catch (thrown) {
      entry?.onError(thrown);
    }
  }

  #onRun(): void {
    for (const slot of this.#watched) {
      if (this.#entries.get(slot)?.onRun() !== true) {
        this.#watched.delete(slot);
      }
    }
  }

  /** Creates the entry of a client that connected or was refused, according to its first event. */
  #open(slot: number): Entry {
    let callbacks!: LoopCallbacks;
    let session!: Session;
    const client = this.#peers.client(slot);
    const peer = this.#peers.connection(
      slot,
      () => this.#entries.delete(slot),
      (refusal) => {
        session.cancel();
        this.#reportRefused({ address: client.remoteAddress, clientGuid: client.clientGuid, ...refusal });
      },
    );
    const connection = new AcceptedConnection(
      (owner) =>
        (session = new Session(peer, SETTINGS, owner, () => SHARED, (_peer, _transport, ...given) => {
          callbacks = given;
          return this.#loopOf(slot);
        })),
      client,
    );
    const [onEvents, onError, onRun] = callbacks;
    const entry = { connection, session, onEvents, onError, onRun };
    this.#entries.set(slot, entry);
    connection.opened.then(
      () => this.#onOpen(connection),
      // Rejections are ignored, because the application has not received the connection yet.
      () => undefined,
    );
    return entry;
  }

  #reportRefused(client: RefusedClient): void {
    if (this.#onRefused !== undefined) {
      guarded(this.#onRefused, client);
    }
  }

  #onOpen(connection: AcceptedConnection): void {
    if (this.#isClosing) {
      void connection.close();
    } else {
      this.#waiting.push(connection);
      this.#forgetEnded();
      this.#giveOut();
    }
  }

  /** Returns the loop of the server, which also handles this connection when it runs. */
  #loopOf(slot: number): SessionLoop {
    return {
      schedule: () => {
        this.#scheduled.add(slot);
        return this.#loop.schedule();
      },
      run: (now) => {
        this.#scheduled.add(slot);
        this.#loop.run(now);
      },
      stop: () => undefined,
    };
  }

  /**
   * Removes the oldest closed connection that was not accepted, if more than `maxConnections` are waiting for `accept`.
   */
  #forgetEnded(): void {
    if (this.#waiting.length > this.#maxConnections) {
      const open = new Set<ServerConnection>(this.connections());
      const ended = this.#waiting.findIndex((connection) => !open.has(connection));
      this.#forgotten += this.#waiting.splice(ended, ended < 0 ? 0 : 1).length;
    }
  }

  /** Passes waiting connections to pending `accept` calls. */
  #giveOut(): void {
    for (let first = this.#accepting.first; first !== undefined; first = this.#accepting.first) {
      const connection = this.#waiting.shift();
      if (connection === undefined && !this.#isOver) {
        return;
      }
      first.resolve(connection);
    }
  }

  #fail(thrown: unknown): void {
    this.#isClosing = true;
    this.#entries.forEach(({ onError }) => onError(thrown));
    this.#end();
  }

  #end(): void {
    if (this.#isOver) {
      return;
    }
    this.#isOver = true;
    // Clients may have connected while other connections were closing.
    this.#entries.forEach(({ session }) => {
      session.disconnect();
      session.onEnded("local", "the server was closed");
    });
    this.#loop.stop();
    this.#socket.close();
    // The server in Rust may be unusable after a failure.
    try {
      this.#peers.all.free();
    } finally {
      this.#giveOut();
      this.#closed.resolve();
    }
  }
}

/**
 * The maximum number of bytes of unread messages that a connection queues to reach a receipt or plugin message behind
 * them. It bounds the memory per client.
 */
const MAX_QUEUED_BYTES = 1024 * 1024;

/** A connection opened by a client. */
class AcceptedConnection extends CheckedConnection implements ServerConnection {
  readonly remoteAddress: string;
  readonly clientGuid: bigint;

  constructor(open: (owner: SessionOwner) => SessionLike, client: { remoteAddress: string; clientGuid: bigint }) {
    super(open, MAX_QUEUED_BYTES);
    this.remoteAddress = client.remoteAddress;
    this.clientGuid = client.clientGuid;
  }
}
