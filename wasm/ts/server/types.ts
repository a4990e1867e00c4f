/** The public types of a server. */

import type { Connection, MemoryOptions, SendOptions, WasmSource } from "../types.js";
import type { WaitOptions } from "../waits.js";

/**
 * The reason for refusing a client. Servers of this package refuse only for the password; Rust servers have the other
 * reasons.
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

/** A client that was refused because of a wrong password. */
export interface RefusedClient {
  /** The source address of the client, such as `192.0.2.7:50000`. It may be forged unless `isValidated`. */
  readonly address: string;
  /**
   * True if the client proved with a cookie or a pong that it receives datagrams sent to its address. Otherwise the
   * address may be forged, so do not ban it.
   */
  readonly isValidated: boolean;
  /** The GUID that the client chose. It is not authenticated. */
  readonly clientGuid: bigint;
  readonly reason: RefuseReason;
}

/** Options of {@link listen}. */
export interface ListenOptions {
  /**
   * The IPv4 or IPv6 address to listen on. A link-local address needs its interface, as in `fe80::1%eth0`. `::` listens
   * on all addresses of both families. Default: `0.0.0.0`, all IPv4 addresses.
   */
  host?: string;
  /** The UDP port, 0 to 65,535. Default: 0, any free port. */
  port?: number;
  /** The maximum number of connected clients, 1 to 10,000. Default: 32. */
  maxConnections?: number;
  /**
   * The maximum number of open connections per address (per /64 prefix in IPv6). Non-routable addresses are not
   * limited. Default: three quarters of `maxConnections`; no limit if that is below 16.
   */
  maxPerAddress?: number;
  /**
   * The maximum number of open connections per network (a /24 prefix in IPv4, /48 in IPv6). Default: seven eighths of
   * `maxConnections`.
   */
  maxPerNetwork?: number;
  /** The password that clients must send, at most 255 bytes (UTF-8). Clients send it unencrypted. Default: none. */
  password?: string | Uint8Array;
  /**
   * The data in pongs, at most 399 bytes (UTF-8). Data that begin with `MCPE;` or `MCEE;` get a length prefix, which
   * clients of Minecraft Bedrock expect. Default: empty.
   */
  advertisement?: string | Uint8Array;
  /**
   * The memory shared by all connections. Default: 128 blocks of 512 bytes per connection of `maxConnections`, but at
   * least 65,536 blocks; 32,768 blocks for a single connection.
   */
  memory?: MemoryOptions;
  /**
   * The time in milliseconds without any datagram from the client after which the connection closes with `lost`, 1 to
   * 2,147,483,647. The time runs only while an acknowledgement is outstanding. The server sends a ping every 5 s.
   * Default: 10,000.
   */
  silenceTimeoutMs?: number;
  /** Called for each client that is refused because of its password. Exceptions are reported without further effect. */
  onRefused?: ((client: RefusedClient) => void) | undefined;
  /**
   * The source of the WebAssembly, instead of the embedded one. Only the option of the first server of a process has an
   * effect.
   */
  wasm?: WasmSource | Promise<WasmSource>;
}

/**
 * A connection opened by a client. Its `transport` is `udp`, and it has no `serverGuid` and no `internalAddresses`. If
 * a receipt or plugin message is waiting behind unread messages, the receive queue holds up to 1 MiB instead of 16 MiB.
 */
export interface ServerConnection extends Connection {
  /**
   * The source address of the client, such as `192.0.2.7:50000`, `[2001:db8::7]:50000` or, if link-local,
   * `[fe80::7%eth0]:50000`.
   */
  readonly remoteAddress: string;
  /** The GUID that the client chose. It is not authenticated. */
  readonly clientGuid: bigint;
}

/** Options of {@link Server.broadcast}. */
export interface BroadcastOptions extends SendOptions {
  /** A connection that does not get the message, such as the connection on which it arrived. */
  except?: ServerConnection | undefined;
}

/** The result of a broadcast. */
export interface Broadcast {
  /** The number of connections to which the message was sent. */
  readonly sent: number;
  /** The connections that refused the message because their send memory is full (`queue-full`). */
  readonly refused: readonly ServerConnection[];
}

/** Counters of a server since its start. */
export interface ServerStats {
  /** Connected clients. */
  readonly connections: number;
  /** Closed connections that were never accepted and were removed because more than `maxConnections` were waiting. */
  readonly connectionsEvicted: number;
  /** Datagrams that the operating system refused to send, or that did not fit into its send buffer. */
  readonly datagramsUnsent: number;
  readonly bytesSent: number;
  readonly bytesReceived: number;
  /**
   * The number of dropped datagrams and messages by reason, including those that belong to no connection. Reasons that
   * did not occur are absent.
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
  /** The local address. If the option `port` was 0, `port` is the number that the system chose. */
  readonly address: { readonly host: string; readonly port: number };

  /** Resolves when the server has closed, because of {@link close} or a failure of its socket. Never rejects. */
  readonly closed: Promise<void>;

  /**
   * Returns the next connection, or `undefined` once the server has closed. If more than `maxConnections` connections
   * wait to be accepted, the oldest closed connections are removed.
   *
   * @throws the reason of the signal. No connection is taken in that case.
   */
  accept(options?: WaitOptions): Promise<ServerConnection | undefined>;

  /** Returns the open connections, accepted or not. */
  connections(): ServerConnection[];

  /**
   * Sends a message to every open connection except `except`. The result lists the connections that could not accept
   * it.
   *
   * @throws RakwireError as `send` does for bytes or options that no connection accepts.
   */
  broadcast(bytes: Uint8Array, options?: BroadcastOptions): Broadcast;

  stats(): ServerStats;

  /**
   * Closes all connections, each after its sent messages are acknowledged or after 5 s, and then the socket. Aborting
   * the signal only ends the wait.
   */
  close(options?: WaitOptions): Promise<void>;

  /** Closes the server, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}
