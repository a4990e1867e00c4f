/// <reference lib="esnext.disposable" preserve="true" />
/** The public types of the package, and the limits and defaults of options. */

import type { RakwireError } from "./errors.js";
import type { WaitOptions } from "./waits.js";

/** Limits and defaults of options. They come first, because bundlers then inline them. */
export const DEFAULT_PROTOCOL_VERSION = 6;
/** Milliseconds to ask a server for its version, and the largest part of the connect timeout used for it. */
export const VERSION_WAIT_MS = 500;
export const VERSION_WAIT_PART = 0.25;
/** The default time for connecting, in milliseconds. */
export const DEFAULT_TIMEOUT_MS = 15_000;
/** The longest delay of a timer, in milliseconds. */
export const MAX_TIMEOUT_MS = 0x7fff_ffff;
/** More parts than any message can have. */
export const MAX_PROGRESS_INTERVAL = 0xffff_ffff;
export const MAX_PASSWORD_BYTES = 255;
export const MAX_BLOCKS = 0xffff;
export const MAX_BLOCK_SIZE = 0xffff;
export const CHANNELS = 32;
/** More bytes than any message can have. */
export const MAX_LENGTH = 0xffff_ffff;
/** The length of the receive queue from which on further messages stay in the memory of the protocol. */
export const MAX_MESSAGES = 256;
/**
 * The size limit of the receive queue in bytes while a receipt or plugin message waits behind unread messages. Each
 * message counts {@link OVERHEAD} more.
 */
export const MAX_BYTES = 16_777_216;
export const OVERHEAD = 64;

/**
 * The delivery guarantee of a message.
 *
 * - `unreliable`: sent once; may be lost or arrive out of order, never twice.
 * - `unreliable-sequenced`: sent once; dropped if a newer one of its channel has already arrived.
 * - `reliable`: arrives exactly once, in any order.
 * - `reliable-ordered`: arrives exactly once, in the order in which its channel was sent.
 * - `reliable-sequenced`: resent until it arrives; dropped if a newer one of its channel has already arrived.
 */
export type Reliability =
  | "unreliable"
  | "unreliable-sequenced"
  | "reliable"
  | "reliable-ordered"
  | "reliable-sequenced";

/** The sending order of messages when not all can be sent. A lower priority is delayed but never starved. */
export type Priority = "immediate" | "high" | "medium" | "low";

/** The protocol of the game server. Messages of the Game Protocol are `reliable` or `unreliable`, and unordered. */
export type Protocol = "raknet" | "game";

/**
 * The transport of datagrams: `webtransport`, `webrtc` or `websocket` to a relay, or in Node `udp` directly to a
 * server. With the first two, a lost datagram does not delay others, as with UDP.
 */
export type TransportName = "webtransport" | "webrtc" | "websocket" | "udp";

/** Options of sending a message. */
export interface SendOptions {
  /** Default: `reliable-ordered`, or `reliable` with the Game Protocol. */
  reliability?: Reliability;
  /**
   * The ordering channel, 0 to 31. Default: 0. Only for ordered and sequenced messages; ignored by the Game Protocol.
   */
  channel?: number;
  /** Default: `medium`. Ignored by the Game Protocol, which sends everything immediately. */
  priority?: Priority;
}

/** Options of {@link Connection.statistics}. */
export interface StatsOptions extends WaitOptions {
  /** The interval in milliseconds, 1 or more. Default: 1,000. */
  intervalMs?: number;
}

/** The message that {@link Connection.ready} waits for. */
export interface ReadyOptions extends SendOptions, WaitOptions {
  /**
   * The length of the message in bytes. If omitted, `ready` waits for the last message that was refused with
   * `queue-full`, or for a message of one byte if none was, regardless of the other options.
   */
  length?: number;
}

/**
 * The outcome of a message that was sent with a receipt.
 *
 * - `acknowledged`: the server has received all of it.
 * - `lost`: it was unreliable, and no acknowledgement arrived. The server may have received it.
 * - `unknown`: the connection ended before the outcome was known.
 */
export type Outcome = "acknowledged" | "lost" | "unknown";

/** The progress of a message that is split into parts of about 1,400 bytes. */
export interface Progress {
  readonly direction: "sending" | "receiving";
  /** Identifies it among the messages in transit in the same direction; numbers repeat after 65,536. */
  readonly message: number;
  /** The number of parts that have arrived or were acknowledged. */
  readonly done: number;
  /** The total number of parts. */
  readonly parts: number;
}

/** A received message. */
export interface Message {
  /** The whole message. In RakNet the first byte is its id, 0x86 or above for messages of applications. */
  readonly bytes: Uint8Array;
  readonly reliability: Reliability;
  readonly channel: number;
}

/**
 * The reason that a connection ended.
 *
 * - `local`: `close()` was called. If the worker of the connection hangs, the server was not notified. `remote`: the
 *   server disconnected. `lost`: the server stopped responding.
 * - `page-left`: the page was closed, reloaded, navigated away from, or put into the back/forward cache.
 * - `relay-closed`: the connection to the relay ended. `origin-refused`, `banned`: the relay does not let the page or
 *   its address return to the connection.
 * - `message-too-large`, `receive-memory`: the server sent more than the memory of the connection can hold.
 * - `sent-too-large`: a sent message was larger than the server can hold.
 * - `path-too-narrow`: the path became too narrow for a message that was being sent in parts.
 * - `message-unfinished`: the server never completed a reliable message.
 * - `no-memory`: the platform has no memory for a received message.
 * - `worker-unavailable`: the worker of an open connection failed or was silent for 15 to 20 s. `connect` rejects with
 *   this code if the worker cannot be started or was closed meanwhile.
 * - `internal`: a bug in this package.
 */
export type CloseCode =
  | "local"
  | "page-left"
  | "remote"
  | "lost"
  | "relay-closed"
  | "origin-refused"
  | "banned"
  | "message-too-large"
  | "sent-too-large"
  | "path-too-narrow"
  | "receive-memory"
  | "message-unfinished"
  | "no-memory"
  | "worker-unavailable"
  | "internal";

/** The close information of a connection. */
export interface CloseInfo {
  readonly code: CloseCode;
  /** A description, including the reason of the relay, if any. */
  readonly reason: string;
  /** The close code of the relay, if it ended the connection. */
  readonly relayCode?: number;
}

/**
 * Datagrams that the relay has dropped since the connection began, by reason; only reasons that occurred. The relay
 * reports them at most once a second.
 *
 * - `queueFull`: newer ones had no room. `tooOld`: they waited too long.
 * - `tooBig`: the server sent datagrams longer than the relay passes on.
 * - `emptyMessage`, `notHandshake`: the relay does not pass them to the server.
 * - `rateLimited`: this connection sends more than the relay allows. `sendRefused`: the operating system of the relay
 *   refused to send them.
 */
export interface RelayDrops {
  /** Datagrams of the server, because this side receives less than the server sends. */
  readonly toClient: Readonly<Record<string, number>>;
  readonly toServer: Readonly<Record<string, number>>;
}

/** Counters and measurements. Times are milliseconds, sizes bytes; all are 0 before the first sample. */
export interface ConnectionStats {
  /** Smoothed round-trip time, including the acknowledgement delay of the server. */
  readonly roundTripMs: number;
  /** Round-trip time of the last ping. */
  readonly pingMs: number;
  readonly lowestPingMs: number;
  /** The number of bytes allowed in flight. */
  readonly congestionWindow: number;
  /** The number of bytes in flight. */
  readonly inFlight: number;
  /** The number of message bytes waiting to be sent. */
  readonly bytesWaiting: number;
  /** The size of the largest datagram, including 28 bytes of IP and UDP headers. */
  readonly mtu: number;
  readonly messagesSent: number;
  /** Messages taken out of the memory of the connection: delivered, queued or discarded. */
  readonly messagesReceived: number;
  /** Messages in the queue, waiting for a listener or a `receive` call. */
  readonly messagesQueued: number;
  /** Messages that were not delivered because `close()` was called. */
  readonly messagesDiscarded: number;
  readonly datagramsSent: number;
  readonly datagramsReceived: number;
  /**
   * Datagrams declared lost; their reliable messages were resent. Decreases if one of them proves to have arrived late.
   */
  readonly datagramsLost: number;
  /**
   * Datagrams that were declared lost but only late, and therefore resent unnecessarily: the path delays or reorders
   * datagrams, or this page or the server was busy.
   */
  readonly datagramsLate: number;
  readonly datagramsAcknowledged: number;
  readonly bytesSent: number;
  readonly bytesReceived: number;
  /**
   * The offset of the RakNet server's clock from `performance.now()`, known after the first ping. Subtract it from a
   * RakNet time of the server to get a time of the page. Not available in the Game Protocol.
   */
  readonly clockDifferenceMs?: number;
  /** Bytes sent in the last whole second. Not available in the Game Protocol. */
  readonly bytesSentLastSecond?: number;
  /** Bytes received in the last whole second. Not available in the Game Protocol. */
  readonly bytesReceivedLastSecond?: number;
  /** The share of message bytes resent in the last whole second, 0 to 1. Not available in the Game Protocol. */
  readonly lossLastSecond?: number;
  /**
   * The longest message that `send` accepts and that a server with equal memory can receive, in bytes: 4,000,000 by
   * default, 129,024 in the Game Protocol. 0 while there is no connection.
   */
  readonly maxMessageLength: number;
  /** Datagrams that the relay reports as dropped; empty with `resume: false` and without a relay. */
  readonly relayDrops: RelayDrops;
  /** The number of dropped datagrams and messages by reason; only reasons that occurred. */
  readonly drops: Readonly<Record<string, number>>;
}

/** The source of the WebAssembly: its URL, its bytes, a response, or the compiled module. */
export type WasmSource = string | URL | BufferSource | Response | WebAssembly.Module;

/** The part of a WebSocket that this package uses. */
export interface WebSocketLike {
  binaryType: string;
  readonly bufferedAmount: number;
  addEventListener(type: string, listener: (event: any) => void): void;
  /** Accepts a `Uint8Array`. Type declarations of WebSockets disagree on the type. */
  send(datagram: any): void;
  close(code?: number, reason?: string): void;
}

/** A WebSocket class, such as the one of the browser or of the npm package `ws`. */
export type WebSocketConstructor = new (url: string, protocols?: string[]) => WebSocketLike;

/**
 * The memory of a connection: half of it for sent and half for received messages. A message occupies as many blocks as
 * its bytes fill, from `send` to its acknowledgement, or from its arrival until it enters the receive queue. The memory
 * limits the length of a message and the amount in transit.
 */
export interface MemoryOptions {
  /** The number of blocks, 4 to 65,535. Default: 32,768; 4,096 with the Game Protocol. */
  blocks?: number;
  /** The size of a block in bytes, 32 to 65,535. Default: 512. */
  blockSize?: number;
}

/** The servers that answer a ping: `any`, or only those with `open-connections`, which accept new clients. */
export type PingScope = "any" | "open-connections";

/** Common options of pings. */
interface BasePingOptions extends WaitOptions {
  /** Default: `any`. */
  scope?: PingScope;
  /** The signed token of a relay that requires one. A single-use token is good for one ping. */
  token?: string;
  /** Milliseconds to wait for the answer of a server, including opening the WebSocket. Default: 5,000. */
  timeoutMs?: number;
  /** A replacement for the global `WebSocket`, which is missing in Node before 22. */
  webSocket?: WebSocketConstructor;
}

/** Options of {@link ping}. */
export interface PingOptions extends BasePingOptions {
  /** The name of the game server at the relay. Ignored for `udp://HOST:PORT`. */
  target?: string;
}

/** Options of {@link discover}. */
export interface DiscoverOptions extends BasePingOptions {
  /** The names of the game servers at the relay. */
  targets: readonly string[];
  /**
   * Called for each server without a pong, with the reason: it does not answer in time, or the relay refuses access to
   * it.
   */
  onUnavailable?(target: string, error: RakwireError): void;
}

/** The answer of a server to a ping. */
export interface Pong {
  /** The name of the server at the relay, or its address. */
  readonly target: string;
  /** Milliseconds from the ping to the pong, through the relay. */
  readonly latencyMs: number;
  /** The GUID of the server. */
  readonly guid: bigint;
  /**
   * The advertisement of the server, 0 to 399 bytes: its name, its players, or whatever the game sends. The length
   * prefix of Minecraft Bedrock servers is removed.
   */
  readonly data: Uint8Array;
  /** The RakNet version of a server that answers like Minecraft Bedrock, for {@link ConnectOptions.protocolVersion}. */
  readonly protocolVersion?: number | undefined;
}

/** Options of connecting. */
export interface ConnectOptions {
  /** The name of the game server at the relay. Ignored for `udp://HOST:PORT`, which is the server itself. */
  target?: string;
  /** The signed token of a relay that requires one. It is not part of the URL of a WebSocket, which may be logged. */
  token?: string;
  /**
   * The fingerprint of the relay's certificate for data channels, which the relay prints when it starts. With it, a
   * page can reach a relay at a bare address to which it cannot send HTTP. By default, the relay announces it.
   */
  fingerprint?: string;
  /**
   * The transport to the relay. `auto` tries all that the platform and the relay support, the best one first and the
   * others a quarter of a second later, and uses the first that opens. A name selects only that one. Default: `auto`.
   */
  transport?: "auto" | Exclude<TransportName, "udp">;
  /**
   * True if another transport may continue the connection when one is lost, as long as the relay keeps its flow, or
   * when a better one opens later. Messages wait in the memory of the connection meanwhile. Set it to false for relays
   * other than `rakwire-relay`, and also omit `token`: browsers close a WebSocket if the server does not know the
   * subprotocol. Default: true.
   */
  resume?: boolean;
  /**
   * True if the connection ends with `page-left` when its page is closed, reloaded, navigated away from, or put into
   * the back/forward cache (`pagehide`), so that the server does not keep an absent player. Messages in transit
   * may be lost. Default: true.
   */
  endWithPage?: boolean;
  /** The protocol of the server. Default: `raknet`, or the one of the entry of the package. */
  protocol?: Protocol;
  /**
   * The RakNet protocol version of the first request: 6 is the original, 10 and 11 are Minecraft Bedrock. If the server
   * names another version, the attempt continues with that one, but some servers then block the address for 10 s.
   * Therefore the default, `"auto"`, first sends a ping through the same flow and within the same timeout, and uses the
   * version of Minecraft Bedrock from the pong, or 6. This takes one more round trip, and half a second if the server
   * does not answer pings. A secure connection sends no ping and begins with 6. If you have a pong already,
   * {@link Pong.protocolVersion} saves the round trip.
   */
  protocolVersion?: number | "auto";
  /** The number of parts of a large message between two `progress` events. Default: 0, no events. */
  progressInterval?: number;
  /** The password of the server, at most 255 bytes (UTF-8). It crosses the network unencrypted. Only for RakNet. */
  password?: string | Uint8Array;
  /** The memory of the connection. Default: about 19 MB, or 2.5 MB with the Game Protocol. */
  memory?: MemoryOptions;
  /**
   * Milliseconds of silence until the connection ends with `lost`, 1 to 2,147,483,647. In RakNet, only counted while
   * the server has something to acknowledge, which is at least a ping every 5 s. Default: 10,000; 15,000 with the Game
   * Protocol.
   */
  silenceTimeoutMs?: number;
  /**
   * The maximum sending rate in bits per second, including UDP and IP headers. Default: as much as the path carries.
   * Only for RakNet.
   */
  outgoingLimit?: number;
  /** Cancels connecting. It has no effect once the connection is open. */
  signal?: AbortSignal | undefined;
  /** Milliseconds for connecting, including WebAssembly and WebSocket. Default: 15,000. */
  timeoutMs?: number;
  /** The source of the WebAssembly, in place of the embedded one. The first connection decides for all. */
  wasm?: WasmSource | Promise<WasmSource>;
  /** A replacement for the global `WebSocket`, which is missing in Node before 22. */
  webSocket?: WebSocketConstructor;
  /**
   * Runs the protocol and the transport in a Web Worker, so that a busy page does not delay them: `worker` of the entry
   * `rakwire/worker`.
   */
  worker?: PeerWorker;
}

/** `message`: a message arrived. */
export interface MessageArrivedEvent extends Event {
  readonly message: Message;
}

/** `progress`: a part of a large message was sent or received. */
export interface ProgressMadeEvent extends Event {
  readonly progress: Progress;
}

/**
 * `mtu`: the path carries less than the peers agreed on. New datagrams have at most this many bytes, including 28 bytes
 * of headers.
 */
export interface MtuChangedEvent extends Event {
  readonly mtu: number;
}

/** `relaydrops`: the relay has dropped datagrams, so send fewer or smaller messages. */
export interface RelayDropsEvent extends Event {
  readonly drops: RelayDrops;
}

/**
 * `draining`: the relay is shutting down, and ends the connection after `leftMs` milliseconds at the latest. It refuses
 * new connections meanwhile. The event occurs up to three times for each transport of the connection; the last one has
 * a `leftMs` of 0.
 */
export interface RelayDrainingEvent extends Event {
  readonly leftMs: number;
}

/** `close`: the connection has ended. */
export interface ClosedEvent extends Event {
  readonly info: CloseInfo;
}

/**
 * `interrupted`: the relay was lost and is sought again; messages wait. `resumed`: the connection continues. A
 * connection that cannot continue dispatches `close` instead.
 */
export type InterruptionEvent = Event;

/** The events of a connection by name. */
export interface ConnectionEventMap {
  message: MessageArrivedEvent;
  progress: ProgressMadeEvent;
  mtu: MtuChangedEvent;
  /** The relay was lost and is sought again; `resumed` or `close` follows. */
  interrupted: InterruptionEvent;
  resumed: InterruptionEvent;
  relaydrops: RelayDropsEvent;
  /** The relay is shutting down. */
  draining: RelayDrainingEvent;
  close: ClosedEvent;
}

/**
 * An open connection.
 *
 * Every message is delivered once, in the order of arrival:
 *
 * - to all listeners of `message` and to `onMessage`, while there is one;
 * - otherwise to the first pending {@link receive} call or iteration;
 * - otherwise later: it waits in the queue until it is received or a listener is added.
 *
 * The queue takes 256 messages. Further ones stay in the memory of the connection; when that is full, the server has to
 * wait. Nothing is dropped: messages that arrived before the connection ended are still delivered afterwards. Only
 * {@link close} discards unread messages, and counts them in `messagesDiscarded`.
 */
export interface Connection extends AsyncIterable<Message>, AsyncDisposable {
  /** Resolves when the connection has ended for any reason. Never rejects. */
  readonly closed: Promise<CloseInfo>;

  /**
   * Queues a message for sending; the bytes are copied. Messages sent in the same task share datagrams.
   *
   * @throws RakwireError with the code `queue-full` when too much waits for acknowledgement: wait for {@link ready} and
   * try again; `too-long` when the message exceeds the limit of the protocol or the memory of the connection: send it
   * in parts. Other codes describe invalid messages.
   */
  send(bytes: Uint8Array, options?: SendOptions): void;

  /**
   * Sends a message like {@link send}, and resolves when its outcome is known. `unreliable`, `reliable` and
   * `reliable-ordered` messages can have a receipt.
   *
   * You may await it before reading messages: meanwhile, up to 16 MiB of them are queued instead of 256 messages.
   * Aborting the signal only ends the wait; the message is still sent.
   *
   * @throws RakwireError as `send` does, and with the code `bad-option` for sequenced messages.
   */
  sendWithReceipt(bytes: Uint8Array, options?: SendOptions & WaitOptions): Promise<Outcome>;

  /**
   * Resolves when {@link send} would accept a message: the last one that was refused with `queue-full`, or one of
   * `options.length` bytes. Another sender may use the room first, and the message is then refused again.
   *
   * ```ts
   * async function sendAll(connection: Connection, parts: Iterable<Uint8Array>) {
   *   for (const part of parts) {
   *     await connection.ready({ length: part.length });
   *     connection.send(part);
   *   }
   * }
   * ```
   *
   * @throws RakwireError with the code `not-connected` if the connection ends first, `too-long` if the message is never
   * accepted, or `bad-option`; or the reason of the signal.
   */
  ready(options?: ReadyOptions): Promise<void>;

  /**
   * Returns the next message, or `undefined` once the connection has ended and all messages were delivered. Waits while
   * there are listeners, because they get the messages.
   *
   * @throws the reason of the signal; no message was taken then.
   */
  receive(options?: WaitOptions): Promise<Message | undefined>;

  /**
   * Iterates over received messages until the connection has ended and all were delivered, like iterating over the
   * connection itself. Messages left by an ended iteration go to the next one. With several iterations at a time, each
   * message goes to one of them. Aborting the signal ends the iteration with its reason.
   */
  messages(options?: WaitOptions): AsyncIterableIterator<Message>;

  /**
   * Closes the connection once earlier messages have arrived, or after 5 s; in a worker after 10 s, and one second
   * later while there is no transport. Unread messages are discarded and counted. Aborting the signal only ends the
   * wait.
   */
  close(options?: WaitOptions): Promise<CloseInfo>;

  /** Resolves like {@link closed}, or rejects with the reason of the signal. */
  whenClosed(options?: WaitOptions): Promise<CloseInfo>;

  /** Closes the connection, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;

  /**
   * The transport in use. It may change while the connection is open, and is `undefined` from `interrupted` to
   * `resumed` and after the end.
   */
  readonly transport: TransportName | undefined;

  stats(): ConnectionStats;

  /**
   * Yields the statistics now and after each interval, until the connection has ended; the last ones are those at its
   * end.
   */
  statistics(options?: StatsOptions): AsyncIterableIterator<ConnectionStats>;

  /** Bytes of messages that wait to be sent, in the connection and in its WebSocket. */
  readonly bufferedAmount: number;

  /** The longest message in bytes that `send` accepts now, as in `stats()`. */
  readonly maxMessageLength: number;

  /** Called with every message, like a listener of `message`, but without creating events. */
  onMessage: ((message: Message) => void) | undefined;

  /**
   * The GUID of a RakNet server, as in its {@link Pong}; the server chooses it. `undefined` in the Game Protocol, and
   * once the connection is closing or has ended.
   */
  readonly serverGuid: bigint | undefined;

  /**
   * Returns the addresses that a RakNet server claims, such as `192.0.2.7:19132` or `[2001:db8::7]:19132`. They are not
   * authenticated. Empty in the Game Protocol, and once the connection has ended.
   */
  internalAddresses(): string[];

  addEventListener<K extends keyof ConnectionEventMap>(
    type: K,
    listener: ConnectionListener<K> | null,
    options?: AddEventListenerOptions | boolean,
  ): void;
  removeEventListener<K extends keyof ConnectionEventMap>(
    type: K,
    listener: ConnectionListener<K> | null,
    options?: EventListenerOptions | boolean,
  ): void;
}

/** A function, or an object with the method `handleEvent`. */
export type ConnectionListener<K extends keyof ConnectionEventMap> =
  | ((event: ConnectionEventMap[K]) => void)
  | { handleEvent(event: ConnectionEventMap[K]): void };

/** A Web Worker that runs connections; `rakwire/worker` exports one. */
export interface PeerWorker extends AsyncDisposable {
  /**
   * Closes all connections of the worker, each once earlier messages have arrived or after 10 s, and then ends it. A
   * worker that hangs is ended after 15 s with its connections. A later connection starts a new one.
   */
  close(): Promise<void>;

  /** Ends the worker, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}
