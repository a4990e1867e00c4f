/** What applications see of a server. */

import type { Connection, MemoryOptions, SendOptions, WasmSource } from "../types.js";
import type { WaitOptions } from "../waits.js";

/**
 * Why a server has refused a client. Servers of this package ask for a password alone; the others are those of servers in Rust.
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

/** A client that was refused by its password. */
export interface RefusedClient {
  /** The address that the client says is its own, such as `192.0.2.7:50000`. */
  readonly address: string;
  /**
   * Whether the client has shown that it receives what is sent to its address, by a cookie or a pong. If not, the address may be
   * forged, so that it is no reason for a ban.
   */
  readonly isValidated: boolean;
  /** The GUID that the client has chosen. Nobody has proved it. */
  readonly clientGuid: bigint;
  readonly reason: RefuseReason;
}

/** How to listen. */
export interface ListenOptions {
  /**
   * The address to listen on, of IPv4 or IPv6; one of a link has its interface, `fe80::1%eth0`. Default: `0.0.0.0`, all addresses of
   * IPv4; `::` stands for all of both.
   */
  host?: string;
  /** The UDP port, 0 to 65,535. Default: 0, any that is free. */
  port?: number;
  /** How many clients may be connected, 1 to 10,000. Default: 32. */
  maxConnections?: number;
  /**
   * How many connections one address (64 bits of IPv6) may have open. Default: three quarters of `maxConnections`, without a limit
   * below 16. Addresses that the Internet does not pass on are not limited.
   */
  maxPerAddress?: number;
  /** The same for one network (24 bits of IPv4, 48 of IPv6). Default: seven eighths of `maxConnections`. */
  maxPerNetwork?: number;
  /** What clients must give, at most 255 bytes (UTF-8). It crosses the network in the clear. Default: nothing. */
  password?: string | Uint8Array;
  /**
   * What the server answers to pings, at most 399 bytes (UTF-8). Default: nothing. Before data that begin with `MCPE;` or `MCEE;` goes
   * their length, as clients of Minecraft Bedrock read it; before others nothing, as in the original.
   */
  advertisement?: string | Uint8Array;
  /**
   * The memory of all connections together. Default: 128 blocks of 512 bytes for each of `maxConnections`, at least 65,536;
   * 32,768 for a single one.
   */
  memory?: MemoryOptions;
  /**
   * How long a client may be silent while there is something that it must acknowledge, which is at least a ping every 5 s: 1 to
   * 2,147,483,647. Default: 10,000.
   */
  silenceTimeoutMs?: number;
  /** Is told of each client that is refused by its password. What it throws is reported and ends nothing. */
  onRefused?: ((client: RefusedClient) => void) | undefined;
  /** The source of the WebAssembly, if not this package. The first server decides for all. */
  wasm?: WasmSource | Promise<WasmSource>;
}

/**
 * A connection that a client has opened. Its `transport` is `udp`; it has neither `serverGuid` nor `internalAddresses`. Of
 * messages that nobody reads it queues 1 MiB while a receipt or a plugin waits for what is behind them, in place of 16.
 */
export interface ServerConnection extends Connection {
  /** Where the client is seen, such as `192.0.2.7:50000`, `[2001:db8::7]:50000` or, at the same link, `[fe80::7%eth0]:50000`. */
  readonly remoteAddress: string;
  /** The GUID that the client has chosen. Nobody has proved it. */
  readonly clientGuid: bigint;
}

/** How to send to all connections of a server. */
export interface BroadcastOptions extends SendOptions {
  /** The connection that gets nothing: it sent the message itself, for example. */
  except?: ServerConnection | undefined;
}

/** The outcome of a message to all connections of a server. */
export interface Broadcast {
  /** To how many connections it was sent. */
  readonly sent: number;
  /** The connections that have no room for it (`queue-full`). */
  readonly refused: readonly ServerConnection[];
}

/** The counters of a server since its start. */
export interface ServerStats {
  /** Clients that are connected. */
  readonly connections: number;
  /** Connections that have ended before somebody accepted them, and gave way to others. */
  readonly connectionsForgotten: number;
  /** Datagrams that the system would not send, or for which its buffer had no room. */
  readonly datagramsUnsent: number;
  readonly bytesSent: number;
  readonly bytesReceived: number;
  /** The number of dropped datagrams and messages by reason, of all connections and of nobody's; only reasons that occurred. */
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
  /** Where it listens; the port is the one that was chosen if the option was 0. */
  readonly address: { readonly host: string; readonly port: number };

  /** Resolves when the server has ended, because of {@link close} or because its socket failed. Never rejects. */
  readonly closed: Promise<void>;

  /**
   * The next connection that a client has opened, or `undefined` once the server has ended. As many wait as there may be; of
   * those that end meanwhile the oldest are forgotten first.
   *
   * @throws the reason of the signal; no connection was taken then.
   */
  accept(options?: WaitOptions): Promise<ServerConnection | undefined>;

  /** The connections that are open, whether they were accepted or not. */
  connections(): ServerConnection[];

  /**
   * Sends a message to every connection that is open, as its `send` does, or to all but `except`. Returns which of them have no
   * room for it and get nothing.
   *
   * @throws RakwireError as `send` does for bytes or options that no connection takes.
   */
  broadcast(bytes: Uint8Array, options?: BroadcastOptions): Broadcast;

  stats(): ServerStats;

  /** Closes all connections, each once earlier messages have arrived or after 5 s, and then the socket. The signal ends only the wait. */
  close(options?: WaitOptions): Promise<void>;

  /** Closes the server, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}
