/// <reference lib="esnext.disposable" preserve="true" />
/** The public types of the package, and the limits and defaults of its options. */

import type { RakwireError } from "./errors.js";
import type { WaitOptions } from "./waits.js";

/** Limits and defaults of options. Declared first so that bundlers inline them. */
export const DEFAULT_PROTOCOL_VERSION = 6;
/** The time limit in milliseconds for requesting the version of a server. It is part of the connect timeout. */
export const VERSION_WAIT_MS = 500;
export const VERSION_WAIT_PART = 0.25;
/** The default connect timeout in milliseconds. */
export const DEFAULT_TIMEOUT_MS = 15_000;
/** The longest timer delay in milliseconds that platforms support. */
export const MAX_TIMEOUT_MS = 0x7fff_ffff;
/** The maximum of `progressInterval`. No message has more parts. */
export const MAX_PROGRESS_INTERVAL = 0xffff_ffff;
export const MAX_PASSWORD_BYTES = 255;
export const MAX_BLOCKS = 0xffff;
export const MAX_BLOCK_SIZE = 0xffff;
export const CHANNELS = 32;
/** The maximum of a length option in bytes. No message is longer. */
export const MAX_LENGTH = 0xffff_ffff;
/**
 * The capacity of the receive queue in messages. When it is full, further messages stay in the memory of the
 * connection.
 */
export const MAX_MESSAGES = 256;
/**
 * The capacity of the receive queue in bytes while a receipt or plugin message is waiting behind unread messages. Each
 * queued message counts as its length plus {@link OVERHEAD}.
 */
export const MAX_BYTES = 16_777_216;
export const OVERHEAD = 64;

/**
 * The delivery guarantee of a message.
 *
 * - `unreliable`: sent once. It may be lost or reordered, but is never delivered twice.
 * - `unreliable-sequenced`: sent once, and dropped if a newer message on its channel has already arrived.
 * - `reliable`: delivered exactly once, in any order.
 * - `reliable-ordered`: delivered exactly once, in the sending order of its channel.
 * - `reliable-sequenced`: resent until acknowledged, but dropped on arrival if a newer message on its channel has
 *   already arrived.
 */
export type Reliability =
  | "unreliable"
  | "unreliable-sequenced"
  | "reliable"
  | "reliable-ordered"
  | "reliable-sequenced";

/**
 * The priority of a message while the path or the peer limits sending. Low priorities are delayed, but never starved.
 */
export type Priority = "immediate" | "high" | "medium" | "low";

/** The protocol of the game server. The Game Protocol supports only `reliable` and `unreliable`, both unordered. */
export type Protocol = "raknet" | "game";

/**
 * The transport of datagrams: `webtransport`, `webrtc` or `websocket` to a relay, or in Node `udp` directly to a
 * server. As with UDP, a lost datagram delays no other datagrams, except with `websocket`.
 */
export type TransportName = "webtransport" | "webrtc" | "websocket" | "udp";

/** Options for sending a message. */
export interface SendOptions {
  /** Default: `reliable-ordered`, or `reliable` with the Game Protocol. */
  reliability?: Reliability;
  /**
   * The ordering channel, 0 to 31. Default: 0. Only ordered and sequenced messages use it. Ignored by the Game
   * Protocol.
   */
  channel?: number;
  /** Default: `medium`. Ignored by the Game Protocol, which has no priorities. */
  priority?: Priority;
}

/** Options of {@link Connection.statistics}. */
export interface StatsOptions extends WaitOptions {
  /** The interval between two snapshots in milliseconds, 1 or more. Default: 1,000. */
  intervalMs?: number;
}

/** Describes the message that {@link Connection.ready} waits to send. */
export interface ReadyOptions extends SendOptions, WaitOptions {
  /**
   * The length of the message in bytes. If omitted, `ready` ignores the other options and waits until the last message
   * that failed with `queue-full` fits, or one byte if none failed.
   */
  length?: number;
}

/**
 * The outcome of a message sent with a receipt.
 *
 * - `acknowledged`: the server has received the whole message.
 * - `lost`: the message was unreliable and was not acknowledged. The server may have received it nevertheless.
 * - `unknown`: the connection closed before the outcome was known.
 */
export type Outcome = "acknowledged" | "lost" | "unknown";

/** The progress of a message that is split into parts of about 1,400 bytes. */
export interface Progress {
  readonly direction: "sending" | "receiving";
  /** The number of the message in its direction. Numbers are reused after 65,536 split messages. */
  readonly message: number;
  /** The number of parts that were acknowledged (sending) or have arrived (receiving). */
  readonly done: number;
  /** The total number of parts. */
  readonly parts: number;
}

/** A received message. */
export interface Message {
  /** The whole message. In RakNet the first byte is the message id; applications use 0x86 and above. */
  readonly bytes: Uint8Array;
  readonly reliability: Reliability;
  readonly channel: number;
}

/**
 * The reason why a connection closed.
 *
 * - `local`: the application called `close()`. If the worker of the connection hung, the server was not notified.
 * - `remote`: the server disconnected.
 * - `lost`: the server stopped responding.
 * - `page-left`: the page was closed, reloaded, navigated away from, or put into the back/forward cache.
 * - `relay-closed`: the connection to the relay closed.
 * - `origin-refused`: the relay does not allow the origin of the page to resume the connection.
 * - `banned`: the relay has banned the address of the page.
 * - `message-too-large`, `receive-memory`: the server sent more than the memory of the connection can hold.
 * - `sent-too-large`: a sent message was larger than the server can hold.
 * - `path-too-narrow`: the path MTU fell below the part size of a message that was being sent.
 * - `message-unfinished`: the server never sent the remaining parts of a reliable message.
 * - `no-memory`: the platform could not allocate memory for a received message.
 * - `worker-unavailable`: the worker of an open connection failed or did not respond for 15 to 20 s. `connect` rejects
 *   with this code if the worker cannot be started, or is closed while connecting.
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

/** Describes why a connection closed. */
export interface CloseInfo {
  readonly code: CloseCode;
  /** A description for logs, including the close reason of the relay if it sent one. */
  readonly reason: string;
  /** The close code of the relay, if the relay closed the connection. */
  readonly relayCode?: number;
}

/**
 * Datagrams dropped by the relay since the connection opened, by reason. Reasons that did not occur are absent. The
 * relay reports at most once a second.
 *
 * - `queueFull`: the queue was full, so older datagrams were dropped for newer ones.
 * - `tooOld`: the datagram was queued for too long.
 * - `tooBig`: the server sent a datagram longer than the relay forwards.
 * - `emptyMessage`, `notHandshake`: the client sent a datagram that the relay does not forward to the server.
 * - `rateLimited`: the client exceeded the rate limit of the relay.
 * - `sendRefused`: the operating system of the relay failed to send the datagram.
 */
export interface RelayDrops {
  /**
   * Datagrams from the server to this client. Drops mean that the client receives more slowly than the server sends.
   */
  readonly toClient: Readonly<Record<string, number>>;
  readonly toServer: Readonly<Record<string, number>>;
}

/** Counters and measurements. Times are in milliseconds and sizes in bytes. Each is 0 before its first sample. */
export interface ConnectionStats {
  /** Smoothed round-trip time, including the acknowledgement delay of the server. */
  readonly roundTripMs: number;
  /** Round-trip time of the last ping. */
  readonly pingMs: number;
  readonly lowestPingMs: number;
  /** The congestion window: the number of bytes that may be in flight. */
  readonly congestionWindow: number;
  /** The number of bytes sent and not yet acknowledged. */
  readonly inFlight: number;
  /** The number of message bytes queued for sending. */
  readonly bytesWaiting: number;
  /** The size of the largest datagram, including 28 bytes of IP and UDP headers. */
  readonly mtu: number;
  readonly messagesSent: number;
  /** Messages that left the memory of the connection: delivered, queued or discarded. */
  readonly messagesReceived: number;
  /** Messages in the receive queue, waiting for a listener or a `receive` call. */
  readonly messagesQueued: number;
  /** Unread messages that `close()` discarded. */
  readonly messagesDiscarded: number;
  readonly datagramsSent: number;
  readonly datagramsReceived: number;
  /**
   * Datagrams declared lost; their reliable messages were resent. Decreases when such a datagram is acknowledged late.
   */
  readonly datagramsLost: number;
  /**
   * Datagrams declared lost by mistake and resent unnecessarily, because they arrived late. Either the path delays or
   * reorders datagrams, or this page or the server was busy.
   */
  readonly datagramsLate: number;
  readonly datagramsAcknowledged: number;
  readonly bytesSent: number;
  readonly bytesReceived: number;
  /**
   * The offset of the RakNet server's clock from `performance.now()` in milliseconds, available after the first ping.
   * Subtract it from a RakNet time of the server to get the time on this page. Not available in the Game Protocol.
   */
  readonly clockDifferenceMs?: number;
  /** Bytes sent in the last full second. Not available in the Game Protocol. */
  readonly bytesSentLastSecond?: number;
  /** Bytes received in the last full second. Not available in the Game Protocol. */
  readonly bytesReceivedLastSecond?: number;
  /** The fraction of message bytes resent in the last full second, 0 to 1. Not available in the Game Protocol. */
  readonly lossLastSecond?: number;
  /**
   * The length limit of sent messages in bytes: the longest message that `send` accepts and that a server with equal
   * memory can receive. 4,000,000 by default, 129,024 in the Game Protocol, 0 while not connected.
   */
  readonly maxMessageLength: number;
  /** Datagrams that the relay reported as dropped. Empty without a relay or with `resume: false`. */
  readonly relayDrops: RelayDrops;
  /** The number of dropped datagrams and messages by reason. Reasons that did not occur are absent. */
  readonly drops: Readonly<Record<string, number>>;
}

/** The source of the WebAssembly: a URL, bytes, a response, or a compiled module. */
export type WasmSource = string | URL | BufferSource | Response | WebAssembly.Module;

/** The members of a WebSocket that this package uses. */
export interface WebSocketLike {
  binaryType: string;
  readonly bufferedAmount: number;
  addEventListener(type: string, listener: (event: any) => void): void;
  /** Accepts a `Uint8Array`. Declared as `any` because WebSocket type declarations disagree on the parameter type. */
  send(datagram: any): void;
  close(code?: number, reason?: string): void;
}

/** A WebSocket class, such as that of the browser or of the npm package `ws`. */
export type WebSocketConstructor = new (url: string, protocols?: string[]) => WebSocketLike;

/**
 * The memory of a connection, in blocks. Half of it is for sent messages and half for received ones. A sent message
 * occupies blocks from `send` until its acknowledgement, a received one until it enters the receive queue. The memory
 * therefore limits both the length of a message and the amount of data in transit.
 */
export interface MemoryOptions {
  /** The number of blocks, 4 to 65,535. Default: 32,768; with the Game Protocol 4,096. */
  blocks?: number;
  /** The size of a block in bytes, 32 to 65,535. Default: 512. */
  blockSize?: number;
}

/** The servers that answer a ping: all (`any`), or only those that accept new clients (`open-connections`). */
export type PingScope = "any" | "open-connections";

/** Options of every ping function. */
interface BasePingOptions extends WaitOptions {
  /** Default: `any`. */
  scope?: PingScope;
  /** The signed token, for relays that require one. A single-use token allows one ping. */
  token?: string;
  /** The timeout in milliseconds for the answer of a server, including opening the WebSocket. Default: 5,000. */
  timeoutMs?: number;
  /** A replacement for the global `WebSocket`, which Node lacks before version 22. */
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
   * Called for each server that does not answer before the timeout, or to which the relay refuses access. `error` is
   * the reason.
   */
  onUnavailable?(target: string, error: RakwireError): void;
}

/** The answer of a server to a ping. */
export interface Pong {
  /** The name of the server at the relay, or its address. */
  readonly target: string;
  /** The time from sending the ping to receiving the pong, through the relay, in milliseconds. */
  readonly latencyMs: number;
  /** The GUID of the server. */
  readonly guid: bigint;
  /**
   * The advertisement of the server, 0 to 399 bytes in a format of the game's choice, such as a name and the number of
   * players. The length prefix of Minecraft Bedrock servers is removed.
   */
  readonly data: Uint8Array;
  /** The RakNet version in the pong of a Minecraft Bedrock server, for {@link ConnectOptions.protocolVersion}. */
  readonly protocolVersion?: number | undefined;
}

/** Options of `connect`. */
export interface ConnectOptions {
  /**
   * The name of the game server at the relay. Ignored for `udp://HOST:PORT`, which is the address of the server itself.
   */
  target?: string;
  /**
   * The signed token, for relays that require one. It is not put into the URL of a WebSocket, because URLs get logged.
   */
  token?: string;
  /**
   * The fingerprint of the relay's data channel certificate, which the relay prints when it starts. A page needs it to
   * connect to a relay to which it cannot send HTTP requests. Default: the fingerprint that the relay announces.
   */
  fingerprint?: string;
  /**
   * The transport to the relay. Default: `auto`, which tries all transports that the platform and the relay support. It
   * tries the best one first and the others a quarter of a second later, and uses the first that opens.
   */
  transport?: "auto" | Exclude<TransportName, "udp">;
  /**
   * True if another transport may continue the connection. It does so when a better transport opens, or after the
   * current one is lost, as long as the relay keeps the connection. Until then, messages stay in the memory of the
   * connection. Default: true.
   *
   * Set it to false for relays other than `rakwire-relay`, and omit `token` too: browsers close a WebSocket if the
   * server does not support the subprotocol.
   */
  resume?: boolean;
  /**
   * True to close the connection with `page-left` when the page is closed, reloaded, navigated away from, or put
   * into the back/forward cache (`pagehide`), so that the server does not keep the player. Messages in transit may be
   * lost. Default: true.
   */
  endWithPage?: boolean;
  /** The protocol of the server. Default: `raknet`, or the protocol of the entry for a single protocol. */
  protocol?: Protocol;
  /**
   * The RakNet protocol version of the first request: 6 is RakNet 4.081, 10 and 11 are Minecraft Bedrock. Default:
   * `"auto"`.
   *
   * If the server requires another version, the attempt continues with that version. Some servers then block the
   * address for 10 s. `"auto"` avoids this by a ping first, within the connect timeout. It uses the version in the pong
   * of a Minecraft Bedrock server, and otherwise 6. The ping costs one round trip, or half a second if the server does
   * not answer pings. To save it, pass the {@link Pong.protocolVersion} of an earlier pong. A secure connection sends
   * no ping and starts with 6.
   */
  protocolVersion?: number | "auto";
  /** The number of parts of a split message between two `progress` events. Default: 0, no events. */
  progressInterval?: number;
  /** The password of the server, at most 255 bytes (UTF-8). It is sent unencrypted. Only for RakNet. */
  password?: string | Uint8Array;
  /** The memory of the connection. Default: about 19 MB, or 2.5 MB with the Game Protocol. */
  memory?: MemoryOptions;
  /**
   * The time in milliseconds without a datagram from the server after which the connection closes with `lost`, 1 to
   * 2,147,483,647. In RakNet, the time runs only while an acknowledgement is outstanding. The client sends a ping every
   * 5 s. Default: 10,000; with the Game Protocol 15,000.
   */
  silenceTimeoutMs?: number;
  /**
   * The maximum sending rate in bits per second, including UDP and IP headers. Default: limited only by congestion
   * control. Only for RakNet.
   */
  outgoingLimit?: number;
  /** Cancels connecting. Has no effect once the connection is open. */
  signal?: AbortSignal | undefined;
  /**
   * The connect timeout in milliseconds, including loading the WebAssembly and opening the transport. Default: 15,000.
   */
  timeoutMs?: number;
  /**
   * The source of the WebAssembly, instead of the embedded one. Only the option of the first connection of a page has
   * an effect.
   */
  wasm?: WasmSource | Promise<WasmSource>;
  /** A replacement for the global `WebSocket`, which Node lacks before version 22. */
  webSocket?: WebSocketConstructor;
  /**
   * Runs the protocol and the transport in a Web Worker, so that a busy page does not delay them. Pass `worker` from
   * the entry `rakwire/worker`.
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
 * `mtu`: the path MTU fell below the MTU negotiated with the server. The value is the new maximum datagram size,
 * including 28 bytes of IP and UDP headers.
 */
export interface MtuChangedEvent extends Event {
  readonly mtu: number;
}

/** `relaydrops`: the relay dropped datagrams. Send fewer or smaller messages. */
export interface RelayDropsEvent extends Event {
  readonly drops: RelayDrops;
}

/**
 * `draining`: the relay is shutting down. It refuses new connections, and closes this one within `leftMs` milliseconds.
 * The event occurs up to three times for each transport of the connection. The last one has a `leftMs` of 0.
 */
export interface RelayDrainingEvent extends Event {
  readonly leftMs: number;
}

/** `close`: the connection closed. */
export interface ClosedEvent extends Event {
  readonly info: CloseInfo;
}

/**
 * `interrupted`: the transport to the relay was lost, and the connection tries to resume while messages stay queued.
 * `resumed`: the connection continues. If it cannot be resumed, `close` follows instead.
 */
export type InterruptionEvent = Event;

/** The events of a connection by name. */
export interface ConnectionEventMap {
  message: MessageArrivedEvent;
  progress: ProgressMadeEvent;
  mtu: MtuChangedEvent;
  /** The transport to the relay was lost. `resumed` or `close` follows. */
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
 * - while `message` listeners or `onMessage` exist: to all of them;
 * - otherwise to the first pending {@link receive} call or iteration;
 * - otherwise to the receive queue, until the application receives it or adds a listener.
 *
 * The queue holds 256 messages. Further messages stay in the memory of the connection, and flow control stops the
 * server when that is full, so no message is dropped. Messages that arrived before the connection closed can still be
 * received afterwards. Only {@link close} discards unread messages, which `messagesDiscarded` counts.
 */
export interface Connection extends AsyncIterable<Message>, AsyncDisposable {
  /** Resolves when the connection has closed for any reason. Never rejects. */
  readonly closed: Promise<CloseInfo>;

  /**
   * Queues a message for sending, and copies its bytes. Messages sent in the same task share datagrams.
   *
   * @throws RakwireError with the code `queue-full` if the send memory is full: wait for {@link ready} and retry;
   * `too-long` if the message exceeds the limit of the protocol or the memory of the connection: send it in parts; or
   * another code if the message is invalid.
   */
  send(bytes: Uint8Array, options?: SendOptions): void;

  /**
   * Sends a message like {@link send}, and resolves when its outcome is known. Only for `unreliable`, `reliable` and
   * `reliable-ordered` messages.
   *
   * You may await the outcome before reading messages: until then, the receive queue holds up to 16 MiB instead of 256
   * messages. Aborting the signal only ends the wait; the message is still sent.
   *
   * @throws RakwireError as `send` does, and with the code `bad-option` for sequenced messages.
   */
  sendWithReceipt(bytes: Uint8Array, options?: SendOptions & WaitOptions): Promise<Outcome>;

  /**
   * Resolves when {@link send} would accept the last message that failed with `queue-full`, or a message of
   * `options.length` bytes. If another caller sends first, `send` may fail again.
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
   * @throws RakwireError with the code `not-connected` if the connection closes first, `too-long` if no message of this
   * length can ever be sent, or `bad-option`; or the reason of the signal.
   */
  ready(options?: ReadyOptions): Promise<void>;

  /**
   * Returns the next message, or `undefined` once the connection has closed and all messages were delivered. While
   * there are listeners, they get the messages and this call waits.
   *
   * @throws the reason of the signal. No message is taken in that case.
   */
  receive(options?: WaitOptions): Promise<Message | undefined>;

  /**
   * Iterates over received messages until the connection has closed and all were delivered, like iterating over the
   * connection itself. Messages left over by one iteration go to the next. Concurrent iterations share the messages:
   * each goes to only one of them. Aborting the signal ends the iteration with its reason.
   */
  messages(options?: WaitOptions): AsyncIterableIterator<Message>;

  /**
   * Closes the connection after all sent messages are acknowledged, or after 5 s; in a worker after 10 s. While there
   * is no transport, it takes one second longer. Unread messages are discarded and counted. Aborting the signal only
   * ends the wait.
   */
  close(options?: WaitOptions): Promise<CloseInfo>;

  /** Resolves like {@link closed}, or rejects with the reason of the signal. */
  whenClosed(options?: WaitOptions): Promise<CloseInfo>;

  /** Closes the connection, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;

  /**
   * The transport in use. It may change while the connection is open. `undefined` from `interrupted` to `resumed`, and
   * after the connection has closed.
   */
  readonly transport: TransportName | undefined;

  stats(): ConnectionStats;

  /**
   * Yields the statistics immediately and then once per interval. The last value is from the moment when the connection
   * closed.
   */
  statistics(options?: StatsOptions): AsyncIterableIterator<ConnectionStats>;

  /** The number of message bytes queued for sending, in the connection and in its WebSocket. */
  readonly bufferedAmount: number;

  /** The current length limit of `send` in bytes, as in `stats()`. */
  readonly maxMessageLength: number;

  /** Called with every message, like a `message` listener but without creating event objects. */
  onMessage: ((message: Message) => void) | undefined;

  /**
   * The GUID that the RakNet server chose, as in its {@link Pong}. `undefined` in the Game Protocol, and once the
   * connection is closing or closed.
   */
  readonly serverGuid: bigint | undefined;

  /**
   * Returns the addresses that the RakNet server reports as its own, such as `192.0.2.7:19132` or
   * `[2001:db8::7]:19132`. They are not authenticated. Empty in the Game Protocol, and once the connection has closed.
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

/** A function, or an object with a method `handleEvent`. */
export type ConnectionListener<K extends keyof ConnectionEventMap> =
  | ((event: ConnectionEventMap[K]) => void)
  | { handleEvent(event: ConnectionEventMap[K]): void };

/** A Web Worker that runs connections. The entry `rakwire/worker` exports an instance. */
export interface PeerWorker extends AsyncDisposable {
  /**
   * Closes all connections of the worker and then terminates it. Each connection closes after its sent messages are
   * acknowledged, or after 10 s. A worker that hangs is terminated after 15 s. A later connection starts a new worker.
   */
  close(): Promise<void>;

  /** Closes the worker, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}
