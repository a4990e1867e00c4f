/// <reference lib="esnext.disposable" preserve="true" />
/** The public types of the package, and the limits and defaults of options. */

import type { RakwireError } from "./errors.js";
import type { WaitOptions } from "./waits.js";

/** The limits and defaults of options. They come first, as bundlers then write them where they are used. */
export const DEFAULT_PROTOCOL_VERSION = 6;
/** How long a server is asked for its version, and the largest part of the time for connecting. */
export const VERSION_WAIT_MS = 500;
export const VERSION_WAIT_PART = 0.25;
/** How long connecting may take. */
export const DEFAULT_TIMEOUT_MS = 15_000;
/** The longest delay of a timer. */
export const MAX_TIMEOUT_MS = 0x7fff_ffff;
/** More parts than any message can have. */
export const MAX_PROGRESS_INTERVAL = 0xffff_ffff;
export const MAX_PASSWORD_BYTES = 255;
export const MAX_BLOCKS = 0xffff;
export const MAX_BLOCK_SIZE = 0xffff;
export const CHANNELS = 32;
/** More bytes than any message can have. */
export const MAX_LENGTH = 0xffff_ffff;
/** The length of the receive queue at which further messages stay in the protocol's memory. */
export const MAX_MESSAGES = 256;
/**
 * The size limit of the receive queue while a receipt or a plugin behind the messages is to get what is its own. Each message counts with
 * {@link OVERHEAD}.
 */
export const MAX_BYTES = 16_777_216;
export const OVERHEAD = 64;

/**
 * The delivery guarantee of a message.
 *
 * - `unreliable`: sent once; may be lost, may arrive out of order, never twice.
 * - `unreliable-sequenced`: sent once; dropped if a newer one of its channel has arrived before.
 * - `reliable`: arrives exactly once, in any order.
 * - `reliable-ordered`: arrives exactly once, in the order in which its channel was sent.
 * - `reliable-sequenced`: resent until it arrives; dropped if a newer one of its channel has arrived before.
 */
export type Reliability =
  | "unreliable"
  | "unreliable-sequenced"
  | "reliable"
  | "reliable-ordered"
  | "reliable-sequenced";

/** Which message is sent first when not all can be sent. It delays others but never starves them. */
export type Priority = "immediate" | "high" | "medium" | "low";

/** The protocol of the game server. Messages of the Game Protocol are `reliable` or `unreliable`, and unordered. */
export type Protocol = "raknet" | "game";

/**
 * What carries datagrams: to a relay `webtransport`, `webrtc` or `websocket`, and in Node `udp` to a server itself. The first
 * two lose datagrams as UDP does, so that one that is lost delays no other.
 */
export type TransportName = "webtransport" | "webrtc" | "websocket" | "udp";

/** How a message is sent. */
export interface SendOptions {
  /** Default: `reliable-ordered`, or `reliable` with the Game Protocol. */
  reliability?: Reliability;
  /** 0 to 31, default 0. Only for ordered and sequenced messages; ignored by the Game Protocol. */
  channel?: number;
  /** Default: `medium`. Ignored by the Game Protocol, which sends everything at once. */
  priority?: Priority;
}

/** How often {@link Connection.statistics} tells. */
export interface StatsOptions extends WaitOptions {
  /** Milliseconds, 1 or more. Default 1,000. */
  intervalMs?: number;
}

/** Which message {@link Connection.ready} waits for room for. */
export interface ReadyOptions extends SendOptions, WaitOptions {
  /**
   * Its bytes. Without it, `ready` waits for the last message that was refused with `queue-full`, or for one of a single
   * byte if none was, whatever the other options say.
   */
  length?: number;
}

/**
 * The outcome of a message that was sent with a receipt.
 *
 * - `acknowledged`: the server has received it completely.
 * - `lost`: it was unreliable, and no acknowledgement arrived. It may still have been received.
 * - `unknown`: the connection ended before the outcome was known.
 */
export type Outcome = "acknowledged" | "lost" | "unknown";

/** The progress of a message that is split into parts of about 1,400 bytes. */
export interface Progress {
  readonly direction: "sending" | "receiving";
  /** Distinguishes it from other messages in transit in the same direction; numbers repeat after 65,536. */
  readonly message: number;
  /** The number of parts that have arrived or were acknowledged. */
  readonly done: number;
  /** The number of all parts. */
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
 * How a connection ended.
 *
 * - `local`: `close()` was called; if the worker of the connection hangs, the server has not heard of it. `remote`: the server disconnected. `lost`: the server stopped responding.
 * - `page-left`: its page was closed, reloaded, navigated away from, or kept by the browser for a return.
 * - `relay-closed`: the connection to the relay ended. `origin-refused`, `banned`: the relay does not let the page or its address
 *   come back to its connection.
 * - `message-too-large`, `receive-memory`: the server sent more than the connection's memory can hold.
 * - `sent-too-large`: a message of this side was larger than the server can hold.
 * - `path-too-narrow`: the path has become too narrow for a message of this side that was sent in parts.
 * - `message-unfinished`: the server never completed a reliable message.
 * - `no-memory`: the platform has no memory for a message that arrived.
 * - `worker-unavailable`: the worker of an open connection failed, or said nothing for 15 to 20 s. `connect` rejects with it where the
 *   worker cannot be started or was closed meanwhile.
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

/** How a connection ended. */
export interface CloseInfo {
  readonly code: CloseCode;
  /** A description, with the reason that the relay gave, if any. */
  readonly reason: string;
  /** The close code of the relay, if it ended the connection. */
  readonly relayCode?: number;
}

/**
 * What the relay has dropped of a connection since its beginning: how many datagrams, by reason; only reasons that occurred.
 * It tells that at most once a second.
 *
 * - `queueFull`: newer ones had no room. `tooOld`: it had waited too long.
 * - `tooBig`: the server sent one that is longer than the relay passes on.
 * - `emptyMessage`, `notHandshake`: the relay does not pass them to the server.
 * - `rateLimited`: this connection sends more than the relay allows. `sendRefused`: the relay's system did not send it.
 */
export interface RelayDrops {
  /** Of the server's datagrams: this side takes less than the server sends. */
  readonly toClient: Readonly<Record<string, number>>;
  readonly toServer: Readonly<Record<string, number>>;
}

/** Counters and measurements. Times are milliseconds, sizes bytes; all are 0 before the first sample. */
export interface ConnectionStats {
  /** Smoothed round-trip time, which includes the acknowledgement delay of the server. */
  readonly roundTripMs: number;
  /** Round-trip time of the last ping. */
  readonly pingMs: number;
  readonly lowestPingMs: number;
  /** How many bytes may be in flight. */
  readonly congestionWindow: number;
  /** How many bytes are in flight. */
  readonly inFlight: number;
  /** How many bytes of messages wait to be sent. */
  readonly bytesWaiting: number;
  /** The size of the largest datagram, including 28 bytes of IP and UDP headers. */
  readonly mtu: number;
  readonly messagesSent: number;
  /** Messages taken out of the memory of the connection: delivered, queued or discarded. */
  readonly messagesReceived: number;
  /** Messages that wait in the queue now, for a listener or for somebody who asks. */
  readonly messagesQueued: number;
  /** Messages that were not delivered because `close()` was called. */
  readonly messagesDiscarded: number;
  readonly datagramsSent: number;
  readonly datagramsReceived: number;
  /**
   * Datagrams declared lost, whose reliable messages were resent, without those that are known to have arrived after all: it falls
   * when one does.
   */
  readonly datagramsLost: number;
  /**
   * Datagrams that were declared lost and had only been late, so that they were resent for nothing: where the path holds back or
   * reorders, or this page or the server was busy.
   */
  readonly datagramsLate: number;
  readonly datagramsAcknowledged: number;
  readonly bytesSent: number;
  readonly bytesReceived: number;
  /**
   * What the clock of a RakNet server is ahead of `performance.now()`, once a ping has come back: a RakNet time of the
   * server less this is a time of the page. None in the Game Protocol.
   */
  readonly clockDifferenceMs?: number;
  /** Bytes that were sent in the last whole second. None in the Game Protocol. */
  readonly bytesSentLastSecond?: number;
  /** Bytes that arrived in the last whole second. None in the Game Protocol. */
  readonly bytesReceivedLastSecond?: number;
  /** The share of the bytes of messages that were resent in the last whole second, 0 to 1. None in the Game Protocol. */
  readonly lossLastSecond?: number;
  /**
   * The longest message in bytes that `send` takes, and that a server with as much memory can receive: 4,000,000 by default,
   * 129,024 in the Game Protocol. 0 while there is no connection.
   */
  readonly maxMessageLength: number;
  /** What the relay says that it dropped; nothing with `resume: false`, and nothing without a relay. */
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
  /** Takes a `Uint8Array`. The type declarations of WebSockets disagree about it. */
  send(datagram: any): void;
  close(code?: number, reason?: string): void;
}

/** A WebSocket class, such as the browser's or the one of the npm package `ws`. */
export type WebSocketConstructor = new (url: string, protocols?: string[]) => WebSocketLike;

/**
 * The memory of a connection: half of it may hold what was sent and half what arrived. A message takes as many blocks as
 * its bytes fill, from `send` to its acknowledgement, or from its arrival until it goes into the receive queue. What a
 * message may be long depends on it, and how much may be on the way.
 */
export interface MemoryOptions {
  /** How many blocks there are, 4 to 65,535. Default: 32,768; 4,096 with the Game Protocol. */
  blocks?: number;
  /** Bytes of a block, 32 to 65,535. Default: 512. */
  blockSize?: number;
}

/** Which servers answer a ping: `any`, or only those with `open-connections`, which take new ones. */
export type PingScope = "any" | "open-connections";

/** How to ask servers without a connection. */
interface AskOptions extends WaitOptions {
  /** Default: `any`. */
  scope?: PingScope;
  /** What a relay asks for that lets in who has a signed token. One that admits once is good for one ping. */
  token?: string;
  /** How long to wait for the answer of a server, including the WebSocket. Default 5,000. */
  timeoutMs?: number;
  /** A replacement for the global `WebSocket`, which Node before 22 does not have. */
  webSocket?: WebSocketConstructor;
}

/** How to ping. */
export interface PingOptions extends AskOptions {
  /** The name of the game server at the relay. Without meaning for `udp://HOST:PORT`. */
  target?: string;
}

/** How to find servers. */
export interface DiscoverOptions extends AskOptions {
  /** The names of the game servers at the relay. */
  targets: readonly string[];
  /** Is told of each server without a pong why: it does not answer in time, or the relay does not let this client to it. */
  onUnavailable?(target: string, error: RakwireError): void;
}

/** What a server says of itself. */
export interface Pong {
  /** The name of the server at the relay, or its address. */
  readonly target: string;
  /** The time from the ping to the pong, by way of the relay. */
  readonly latencyMs: number;
  /** Who the server is. */
  readonly guid: bigint;
  /**
   * What the server says, 0 to 399 bytes: its name, its players or whatever its game puts there. The length that servers
   * of Minecraft Bedrock write before it is removed.
   */
  readonly data: Uint8Array;
  /** The RakNet version of a server that writes as Minecraft Bedrock does, for {@link ConnectOptions.protocolVersion}. */
  readonly protocolVersion?: number | undefined;
}

/** How to connect. */
export interface ConnectOptions {
  /** The name of the game server at the relay. Without meaning for `udp://HOST:PORT`, which leads to the server itself. */
  target?: string;
  /** What a relay asks for that lets in who has a signed token. It is not written into the URL of a WebSocket, which a log may
   * have. */
  token?: string;
  /**
   * The fingerprint of the relay's certificate for data channels, as the relay prints it at its start. With it a page reaches
   * a relay at a bare address to which it cannot send HTTP. Without it the relay tells it.
   */
  fingerprint?: string;
  /**
   * What carries datagrams to the relay. `auto` tries all that the platform and the relay have, the best first and the others
   * a quarter of a second apart, and goes on with the first that opens; one name is that one alone. Default: `auto`.
   */
  transport?: "auto" | Exclude<TransportName, "udp">;
  /**
   * Whether another transport takes over when one is lost, and goes on with the same flow of the relay, as long as the relay
   * keeps it; and whether a better one does when it opens after all. Messages wait meanwhile in the memory of the connection. Default: true. Relays other than `rakwire-relay` need
   * false, and `token` needs this one, too: browsers close a WebSocket whose server does not know the subprotocol.
   */
  resume?: boolean;
  /**
   * Whether the connection ends with `page-left` when its page is closed, reloaded, navigated away from, or kept for a return
   * (`pagehide`), so that the server has no player who has gone. What is on its way then may be lost. Default: true.
   */
  endWithPage?: boolean;
  /** The protocol of the server. Default `raknet`, or the one that the entry of the package has. */
  protocol?: Protocol;
  /**
   * The RakNet protocol version that the first request announces: 6 is the original, 10 and 11 are Minecraft Bedrock. If the
   * server names another one, the attempt goes on with that; some servers of other makes then block the address for 10 s. So
   * `"ask"`, the default, sends a ping by the same flow and within the same timeout, and begins with the version that the pong
   * shows: that of Minecraft Bedrock, or 6. It takes a round trip more, and half a second if the server answers no ping; a
   * secure connection does not ask and begins with 6. {@link Pong.protocolVersion} saves the round trip where there is a pong.
   */
  protocolVersion?: number | "ask";
  /** The number of parts of a large message between two `progress` events. Default 0, which means no events. */
  progressInterval?: number;
  /** What the server asks for, at most 255 bytes (UTF-8). It crosses the network in the clear. Only for RakNet. */
  password?: string | Uint8Array;
  /** The memory of the connection. Default: about 19 MB, or 2.5 MB with the Game Protocol. */
  memory?: MemoryOptions;
  /**
   * How long the server may be silent until the connection ends with `lost`, 1 to 2,147,483,647; in RakNet while there is
   * something that it must acknowledge, which is at least a ping every 5 s. Default: 10,000; 15,000 with the Game Protocol.
   */
  silenceTimeoutMs?: number;
  /**
   * The most that leaves in a second, in bits, with the headers of UDP and IP. Default: as much as the path carries. Only
   * for RakNet.
   */
  outgoingLimit?: number;
  /** Cancels connecting. It has no effect once the connection is open. */
  signal?: AbortSignal | undefined;
  /** How long connecting may take, including WebAssembly and WebSocket. Default 15,000. */
  timeoutMs?: number;
  /** The source of the WebAssembly, if not this package. The first connection decides for all. */
  wasm?: WasmSource | Promise<WasmSource>;
  /** A replacement for the global `WebSocket`, which Node before 22 does not have. */
  webSocket?: WebSocketConstructor;
  /**
   * Runs protocol and transport in a Web Worker, where a page that is busy does not delay them: `worker` of the entry
   * `rakwire/worker`.
   */
  worker?: PeerWorker;
}

/** `message`: a message arrived. */
export interface MessageArrivedEvent extends Event {
  readonly message: Message;
}

/** `progress`: progress of a large message, sent or received. */
export interface ProgressMadeEvent extends Event {
  readonly progress: Progress;
}

/** `mtu`: the path carries less than the peers agreed on. New datagrams have at most this MTU, headers of 28 bytes included. */
export interface MtuChangedEvent extends Event {
  readonly mtu: number;
}

/** `relaydrops`: the relay has dropped datagrams, so that fewer or smaller messages would get through better. */
export interface RelayDropsEvent extends Event {
  readonly drops: RelayDrops;
}

/**
 * `draining`: the relay is about to end, and ends the connection after `leftMs` milliseconds at the latest. It accepts no other
 * connection meanwhile. The relay says so up to three times by each way to it that the connection has: a `leftMs` of 0 is the last moment.
 */
export interface RelayDrainingEvent extends Event {
  readonly leftMs: number;
}

/** `close`: the connection has ended. */
export interface ClosedEvent extends Event {
  readonly info: CloseInfo;
}

/**
 * `interrupted`: the relay was lost and is sought again; messages wait. `resumed`: the connection goes on where it was. A
 * connection that cannot go on dispatches `close` instead.
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
  /** The relay is about to end. */
  draining: RelayDrainingEvent;
  close: ClosedEvent;
}

/**
 * An open connection.
 *
 * Every message is delivered once, in the order of its arrival:
 *
 * - to all listeners of `message` and to `onMessage`, while there is one;
 * - otherwise to the first one who asks, by {@link receive} or by iterating;
 * - otherwise later: it waits in the queue until somebody asks or a listener is added.
 *
 * The queue takes 256 messages. Further ones stay in the memory of the connection, and when that is full, the server has to
 * wait. Nothing is dropped: what arrived before the connection ended is still delivered after it. Only {@link close}
 * discards what nobody has read, and counts it in `messagesDiscarded`.
 */
export interface Connection extends AsyncIterable<Message>, AsyncDisposable {
  /** Resolves when the connection has ended, for whatever reason. Never rejects. */
  readonly closed: Promise<CloseInfo>;

  /**
   * Queues a message for sending; the bytes are copied. Messages sent in the same task share datagrams.
   *
   * @throws RakwireError with code `queue-full` when too much is waiting for acknowledgement: wait for {@link ready} and try
   * again; with code `too-long` when the message is longer than the protocol allows or than the memory of the connection:
   * send it in parts. Other codes describe what else is wrong with the message.
   */
  send(bytes: Uint8Array, options?: SendOptions): void;

  /**
   * Sends a message as {@link send} does, and resolves when its outcome is known. `unreliable`, `reliable` and
   * `reliable-ordered` messages can have a receipt.
   *
   * It may be awaited before messages are read: meanwhile up to 16 MiB of them are queued instead of 256. The signal ends
   * the wait and takes nothing back.
   *
   * @throws RakwireError as `send` does, and with code `bad-option` for sequenced messages.
   */
  sendWithReceipt(bytes: Uint8Array, options?: SendOptions & WaitOptions): Promise<Outcome>;

  /**
   * Resolves when {@link send} would accept a message: the last one that was refused with `queue-full`, or one of
   * `options.length` bytes. Another sender may take the room first, and then the message is refused again.
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
   * @throws RakwireError with code `not-connected` when the connection ends before, `too-long` when the message is never
   * accepted, `bad-option`; or the reason of the signal.
   */
  ready(options?: ReadyOptions): Promise<void>;

  /**
   * The next message, or `undefined` once the connection has ended and all messages were delivered. While there are
   * listeners it waits, for they get the messages.
   *
   * @throws the reason of the signal; no message was taken then.
   */
  receive(options?: WaitOptions): Promise<Message | undefined>;

  /**
   * The received messages, until the connection has ended and all were delivered. The same as iterating over the connection
   * itself. What an iterator leaves when it is broken off goes to the next one; of several at the same time, each message
   * goes to one. A signal ends the iteration with its reason.
   */
  messages(options?: WaitOptions): AsyncIterableIterator<Message>;

  /**
   * Closes the connection once earlier messages have arrived, or after 5 s; in a worker, after 10 s. It takes a second more where
   * there is no transport just then. Unread messages are discarded and counted. The signal ends only the wait.
   */
  close(options?: WaitOptions): Promise<CloseInfo>;

  /** The same as {@link closed}, for a limited time: rejects with the reason of the signal. */
  whenClosed(options?: WaitOptions): Promise<CloseInfo>;

  /** Closes the connection, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;

  /**
   * What carries the datagrams now. It may change while the connection is open, and is `undefined` while there is nothing,
   * from `interrupted` to `resumed`, and after the end.
   */
  readonly transport: TransportName | undefined;

  stats(): ConnectionStats;

  /** The statistics now and after each interval, until the connection has ended; the last ones are those of its end. */
  statistics(options?: StatsOptions): AsyncIterableIterator<ConnectionStats>;

  /** Bytes of messages that wait to be sent, in the connection and in its WebSocket. */
  readonly bufferedAmount: number;

  /** The longest message in bytes that `send` takes now, as `stats()` has it. */
  readonly maxMessageLength: number;

  /** Gets every message, as a listener of `message` does, without an event for each. */
  onMessage: ((message: Message) => void) | undefined;

  /**
   * The GUID of a RakNet server, which is the one in its {@link Pong}: the server chose it itself. None in the Game
   * Protocol, and none once the connection is closing or has ended.
   */
  readonly serverGuid: bigint | undefined;

  /**
   * The addresses that a RakNet server has said are its own, such as `192.0.2.7:19132` or `[2001:db8::7]:19132`; nobody
   * has proved them. None in the Game Protocol, and none once the connection has ended.
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

/** A Web Worker for the sessions of connections; `rakwire/worker` has one. */
export interface PeerWorker extends AsyncDisposable {
  /**
   * Closes all connections of the worker, each once earlier messages have arrived or after 10 s, and then ends it. If it does
   * nothing for 15 s, it is ended all the same, and its connections with it. A later connection starts another
   * one.
   */
  close(): Promise<void>;

  /** Ends the worker, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}
