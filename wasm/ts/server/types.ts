/** The public types of a server. */

import type { Connection, MemoryOptions, SendOptions, WasmSource } from "../types.js";
import type { WaitOptions } from "../waits.js";

/**
 * The reason for refusing a client. Servers of this package only check the password; the other reasons occur in Rust
 * servers.
 */
export type RefuseReason =
  | "wrong-password"
  | "no-identity"
  | "invalid-identity"
  | "no-token"
  | "token-expired"
  | "token-for-other-server"
  | "token-of-other-client"
  | "token-used"
  | "token-store-full"
  | "other";

/** A client that was refused because of its password. */
export interface RefusedClient {
  /** The claimed address of the client, such as `192.0.2.7:50000`. */
  readonly address: string;
  /**
   * True if the client proved by a cookie or a pong that it receives datagrams at its address. Otherwise the address
   * may be forged and must not be banned.
   */
  readonly isValidated: boolean;
  /** The GUID chosen by the client. It is not authenticated. */
  readonly clientGuid: bigint;
  readonly reason: RefuseReason;
}

/** Options of {@link listen}. */
export interface ListenOptions {
  /**
   * The IPv4 or IPv6 address to listen on; a link-local one includes its interface, `fe80::1%eth0`. `::` listens on all
   * addresses of both families. Default: `0.0.0.0`, all IPv4 addresses.
   */
  host?: string;
  /** The UDP port, 0 to 65,535. Default: 0, any free port. */
  port?: number;
  /** The maximum number of connected clients, 1 to 10,000. Default: 32. */
  maxConnections?: number;
  /**
   * The maximum number of open connections per address (64 bits of IPv6). Default: three quarters of `maxConnections`,
   * no limit below 16. Non-routable addresses are not limited.
   */
  maxPerAddress?: number;
  /**
   * The maximum number of open connections per network (24 bits of IPv4, 48 of IPv6). Default: seven eighths of
   * `maxConnections`.
   */
  maxPerNetwork?: number;
  /**
   * The password that clients must send, at most 255 bytes (UTF-8). It crosses the network unencrypted. Default: none.
   */
  password?: string | Uint8Array;
  /**
   * The data in answers to pings, at most 399 bytes (UTF-8). Data that begin with `MCPE;` or `MCEE;` are preceded by
   * their length, as clients of Minecraft Bedrock expect. Default: empty.
   */
  advertisement?: string | Uint8Array;
  /**
   * The memory shared by all connections. Default: 128 blocks of 512 bytes for each of `maxConnections`, at least
   * 65,536 blocks; 32,768 for a single connection.
   */
  memory?: MemoryOptions;
  /**
   * Milliseconds without a reply until a client counts as lost, while it has something to acknowledge, which is at
   * least a ping every 5 s: 1 to 2,147,483,647. Default: 10,000.
   */
  silenceTimeoutMs?: number;
  /** Called for each client that is refused because of its password. Exceptions are reported and end nothing. */
  onRefused?: ((client: RefusedClient) => void) | undefined;
  /** The source of the WebAssembly, in place of the embedded one. The first server decides for all. */
  wasm?: WasmSource | Promise<WasmSource>;
}

/**
 * A connection opened by a client. Its `transport` is `udp`; it has neither `serverGuid` nor `internalAddresses`. If a
 * receipt or plugin message waits behind unread messages, it queues up to 1 MiB of them instead of 16 MiB.
 */
export interface ServerConnection extends Connection {
  /**
   * The observed address of the client, such as `192.0.2.7:50000`, `[2001:db8::7]:50000` or, if link-local,
   * `[fe80::7%eth0]:50000`.
   */
  readonly remoteAddress: string;
  /** The GUID chosen by the client. It is not authenticated. */
  readonly clientGuid: bigint;
}

/** Options of {@link Server.broadcast}. */
export interface BroadcastOptions extends SendOptions {
  /** A connection to skip, such as the sender of the message. */
  except?: ServerConnection | undefined;
}

/** The result of a broadcast. */
export interface Broadcast {
  /** The number of connections that the message was sent to. */
  readonly sent: number;
  /** The connections without room for it (`queue-full`). */
  readonly refused: readonly ServerConnection[];
}

/** Counters of a server since its start. */
export interface ServerStats {
  /** Connected clients. */
  readonly connections: number;
  /** Connections that ended before they were accepted, and were removed to make room for others. */
  readonly connectionsEvicted: number;
  /** Datagrams that the system refused to send, or for which its buffer had no room. */
  readonly datagramsUnsent: number;
  readonly bytesSent: number;
  readonly bytesReceived: number;
  /**
   * The number of dropped datagrams and messages by reason, including those of no connection; only reasons that
   * occurred.
   */
  readonly drops: Readonly<Record<string, number>>;
}

/**
 * A RakNet server. Iterating over it accepts its connections:
 *
 * ```ts
 * async function acceptAll(server: Server) {
 *   for await (const connection of server) {
 *     echo(connection).catch(console.error);
 *   }
 * }
 *
 * async function echo(connection: ServerConnection) {
 *   for await (const { bytes, reliability, channel } of connection) {
 *     await connection.ready({ length: bytes.length, reliability, channel });
 *     connection.send(bytes, { reliability, channel });
 *   }
 * }
 * ```
 */
export interface Server extends AsyncIterable<ServerConnection>, AsyncDisposable {
  /** The local address. If the option `port` was 0, this is the port that was chosen. */
  readonly address: { readonly host: string; readonly port: number };

  /** Resolves when the server has ended, because of {@link close} or a failure of its socket. Never rejects. */
  readonly closed: Promise<void>;

  /**
   * Returns the next connection, or `undefined` once the server has ended. At most `maxConnections` wait; of those that
   * end meanwhile, the oldest are forgotten first.
   *
   * @throws the reason of the signal; no connection was taken then.
   */
  accept(options?: WaitOptions): Promise<ServerConnection | undefined>;

  /** Returns the open connections, accepted or not. */
  connections(): ServerConnection[];

  /**
   * Sends a message to every open connection except `except`. Returns the connections without room, which do not get
   * it.
   *
   * @throws RakwireError as `send` does for bytes or options that no connection accepts.
   */
  broadcast(bytes: Uint8Array, options?: BroadcastOptions): Broadcast;

  stats(): ServerStats;

  /**
   * Closes all connections, each once earlier messages have arrived or after 5 s, and then the socket. Aborting the
   * signal only ends the wait.
   */
  close(options?: WaitOptions): Promise<void>;

  /** Closes the server, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}
