/** Wraps a server in Rust, and gives each of its connections the interface of a peer. */

import { RakwireError } from "../errors.js";
import type { PeerSettings } from "../options.js";
import type { Peer } from "../peer.js";
import { RakNetPeerHandle } from "../peer.js";
import type { Rust, RustPeer, RustServer } from "../rust.js";
import { dropNames, HEADER, readTexts, recordAt } from "../rust.js";
import { ADDRESS, textOf } from "./socket.js";
import type { RefusedClient, RefuseReason } from "./types.js";

/** The refusal of a client, as reported by Rust. */
type Refusal = Pick<RefusedClient, "reason" | "isValidated">;

/** The number of the event kind, and the refusal reasons by number, as in `src/npm/record.rs`. */
const REFUSED = 10;
const REASONS: readonly RefuseReason[] = [
  "other",
  "wrong-password",
  "no-identity",
  "invalid-identity",
  "no-token",
  "token-expired",
  "token-for-other-server",
  "token-of-other-client",
  "token-used",
  "token-store-full",
];

/** The settings of a server; 0 is a default. */
export interface ServerSettings {
  maxConnections: number;
  blocks: number;
  blockSize: number;
  silenceTimeoutMs: number;
  maxPerAddress: number;
  maxPerNetwork: number;
  password: Uint8Array;
  advertisement: Uint8Array;
}

/** Placeholder settings for peers that already exist in Rust. */
export const MADE: PeerSettings = {
  protocol: "raknet",
  protocolVersion: 0,
  progressInterval: 0,
  password: new Uint8Array(0),
  memory: {},
  silenceTimeoutMs: 0,
  outgoingLimit: 0,
};

/** Stubs for the peer functions that are never called, neither for the server nor for its connections. */
const NEVER: Omit<RustPeer, "create" | "reserve" | "free"> = {
  connect: () => 0,
  handle: () => undefined,
  handleTimeout: () => undefined,
  disconnect: () => undefined,
  pollTransmit: () => 0,
  pollEvent: () => 0,
  pollTimeout: () => Infinity,
  isOver: () => 0,
  send: () => 0,
  canSend: () => 0,
  stats: () => 0,
  texts: () => 0,
  setCarrier: () => undefined,
};

/** A server without socket and timers. */
export class ServerPeers {
  /** The server as a single peer. Each of its datagrams starts with the bytes of its address. */
  readonly all: Pick<Peer, "handle" | "handleTimeout" | "pollTransmit" | "pollTimeout" | "free">;

  readonly #loaded: Rust;
  #view = new DataView(new ArrayBuffer(0));
  readonly #rust: RustServer;
  readonly #server: number;

  constructor(loaded: Rust, settings: ServerSettings) {
    const rust = loaded.server;
    if (rust === undefined) {
      throw new RakwireError("bad-option", "this WebAssembly has no server; use rakwire/server.wasm");
    }
    const { maxConnections, blocks, blockSize, silenceTimeoutMs, maxPerAddress, maxPerNetwork, password, advertisement } = settings;
    const [a, b, c, d] = crypto.getRandomValues(new BigUint64Array(4)) as unknown as [bigint, bigint, bigint, bigint];
    this.#loaded = loaded;
    this.#rust = rust;
    this.#server = rust.create(a, b, c, d, maxConnections, blocks, blockSize, silenceTimeoutMs, maxPerAddress, maxPerNetwork);
    if (this.#server === 0) {
      throw new RakwireError("no-memory", "there is not enough memory; lower maxConnections or memory.blocks");
    }
    this.#set("password", password, rust.setPassword);
    this.#set("advertisement", advertisement, rust.setAdvertisement);
    const { reserve, handle, handleTimeout, pollTransmit, pollTimeout, free } = rust;
    this.all = this.#peer({ reserve, handle, handleTimeout, pollTransmit, pollTimeout, free });
  }

  /** Returns the slot of the next connection with an event. */
  pollReadable(): number | undefined {
    const connection = this.#rust.pollReadable(this.#server);
    return connection < 0 ? undefined : connection;
  }

  /** The address and the claimed GUID of a client. */
  client(connection: number): { remoteAddress: string; clientGuid: bigint } {
    const at = this.#rust.client(this.#server, connection);
    const bytes = at === 0 ? new Uint8Array(ADDRESS + 8) : recordAt(this.#loaded.memory, at);
    return { remoteAddress: textOf(bytes), clientGuid: new DataView(bytes.buffer).getBigUint64(ADDRESS, true) };
  }

  /**
   * Creates the session peer of a connection. Calls `onFree` when the peer is freed, or `onRefused` if the client was
   * refused.
   */
  connection(connection: number, onFree: () => void, onRefused: (refusal: Refusal) => void): Peer {
    const [rust, server] = [this.#rust, this.#server];
    return this.#peer({
      reserve: rust.reserve,
      disconnect: (_, now) => rust.disconnect(server, connection, now),
      pollEvent: () => {
        const at = rust.pollEvent(server, connection);
        const refused = this.#refused(at);
        if (refused !== undefined) {
          onRefused(refused);
          return 0;
        }
        return at;
      },
      isOver: () => rust.isOver(server, connection),
      send: (_, length, delivery, now) => rust.send(server, connection, length, delivery, now),
      canSend: (_, length, delivery) => rust.canSend(server, connection, length, delivery),
      stats: () => rust.stats(server, connection),
      texts: () => rust.texts(server),
      free: () => {
        rust.forget(server, connection);
        onFree();
      },
    });
  }

  stats(): { bytesSent: number; bytesReceived: number; drops: Record<string, number> } {
    const bytes = recordAt(this.#loaded.memory, this.#rust.serverStats(this.#server));
    const [bytesSent = 0, bytesReceived = 0, ...times] = new Float64Array(bytes.buffer);
    const names = dropNames(readTexts(recordAt(this.#loaded.memory, this.#rust.texts(this.#server))));
    const counted = names.map((name, index) => [name, times[index] ?? 0] as const);
    return { bytesSent, bytesReceived, drops: Object.fromEntries(counted.filter(([, count]) => count > 0)) };
  }

  /** Wraps a peer that already exists in Rust, with these functions. */
  #peer(functions: Pick<RustPeer, "reserve" | "free"> & Partial<RustPeer>): Peer {
    return new RakNetPeerHandle({ ...this.#loaded, raknet: { ...NEVER, ...functions, create: () => this.#server } }, MADE);
  }

  /**
   * Reads the event at `at` as the refusal of a client; `undefined` if it is an event of another kind. The lowest
   * values of `at` mean that there is no event.
   */
  #refused(at: number): Refusal | undefined {
    if (at < HEADER) {
      return undefined;
    }
    // The view is reused until the memory grows.
    if (this.#view.buffer !== this.#loaded.memory.buffer) {
      this.#view = new DataView(this.#loaded.memory.buffer);
    }
    const view = this.#view;
    if (view.getUint32(at, true) !== REFUSED) {
      return undefined;
    }
    return { reason: REASONS[view.getUint32(at + 4, true)] ?? "other", isValidated: view.getUint32(at + 8, true) === 1 };
  }

  #set(name: string, bytes: Uint8Array, set: (server: number, length: number) => number): void {
    const at = this.#rust.reserve(this.#server, bytes.length);
    new Uint8Array(this.#loaded.memory.buffer).set(bytes, at + HEADER);
    if (set(this.#server, bytes.length) === 0) {
      throw new RakwireError("bad-option", `${name} is too long`);
    }
  }
}
