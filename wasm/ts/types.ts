/** The public types of the package. */

import type { ClosedEvent, MessageArrivedEvent, ProgressMadeEvent } from "./events.js";

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

/** How a message is sent. */
export interface SendOptions {
  /** Default: `reliable-ordered`, or `reliable` with the Game Protocol. */
  reliability?: Reliability;
  /** 0 to 31, default 0. Only for ordered and sequenced messages; ignored by the Game Protocol. */
  channel?: number;
  /** Default: `medium`. Ignored by the Game Protocol, which sends everything at once. */
  priority?: Priority;
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
 * - `local`: `close()` was called. `remote`: the server disconnected. `lost`: the server stopped responding.
 * - `relay-closed`: the WebSocket to the relay ended.
 * - `message-too-large`, `receive-memory`: the server sent more than the connection's memory can hold.
 * - `message-unfinished`: the server never completed a reliable message.
 * - `internal`: a bug in this package.
 */
export type CloseCode =
  | "local"
  | "remote"
  | "lost"
  | "relay-closed"
  | "message-too-large"
  | "receive-memory"
  | "message-unfinished"
  | "internal";

/** How a connection ended. */
export interface CloseInfo {
  readonly code: CloseCode;
  /** A description, with the reason that the relay gave, if any. */
  readonly reason: string;
  /** The close code of the WebSocket, if the relay ended the connection. */
  readonly relayCode?: number;
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
  /** The size of the largest datagram, including 28 bytes of IP and UDP headers. */
  readonly mtu: number;
  readonly messagesSent: number;
  readonly messagesReceived: number;
  readonly datagramsSent: number;
  readonly datagramsReceived: number;
  /** Datagrams declared lost, whose reliable messages were resent. */
  readonly datagramsLost: number;
  readonly datagramsAcknowledged: number;
  readonly bytesSent: number;
  readonly bytesReceived: number;
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
export type WebSocketConstructor = new (url: string) => WebSocketLike;

/** How to connect. */
export interface ConnectOptions {
  /** The name of the game server at the relay. */
  target: string;
  /** The protocol of the server. Default `raknet`. */
  protocol?: Protocol;
  /**
   * The RakNet protocol version that the server is told first: 6 is the original, 10 and 11 are Minecraft Bedrock. If the
   * server names another one, the attempt goes on with that. Default 6.
   */
  protocolVersion?: number;
  /** The number of parts of a large message between two `progress` events. Default 0, which means no events. */
  progressInterval?: number;
  /** Cancels connecting. It has no effect once the connection is open. */
  signal?: AbortSignal;
  /** How long connecting may take, including WebAssembly and WebSocket. Default 15,000. */
  timeoutMs?: number;
  /** The source of the WebAssembly, if not this package. The first connection decides for all. */
  wasm?: WasmSource;
  /** A replacement for the global `WebSocket`, which Node before 22 does not have. */
  webSocket?: WebSocketConstructor;
}

/** The events of a connection by name. */
export interface ConnectionEventMap {
  message: MessageArrivedEvent;
  progress: ProgressMadeEvent;
  close: ClosedEvent;
}

/**
 * An open connection.
 *
 * Messages go to the listeners of `message` if there are any, and otherwise wait for `for await`. A few hundred are
 * queued; the rest stays in the memory of the connection, which slows the server down.
 */
export interface Connection extends AsyncIterable<Message> {
  /** Resolves when the connection has ended, for whatever reason. Never rejects. */
  readonly closed: Promise<CloseInfo>;

  /**
   * Queues a message for sending; the bytes are copied. Messages sent in the same task share datagrams.
   *
   * @throws RakwireError with code `queue-full` when too much is waiting for acknowledgement: try again later; with code
   * `too-long` when the message is longer than the protocol allows or than the memory of the connection: send it in parts.
   * Other codes describe what else is wrong with the message.
   */
  send(bytes: Uint8Array, options?: SendOptions): void;

  /**
   * Sends a message as {@link send} does, and resolves when its outcome is known. `unreliable`, `reliable` and
   * `reliable-ordered` messages can have a receipt.
   *
   * It may be awaited before messages are read: meanwhile up to 16 MiB of them are queued instead of a few hundred.
   *
   * @throws RakwireError as `send` does, and with code `bad-option` for sequenced messages.
   */
  sendWithReceipt(bytes: Uint8Array, options?: SendOptions): Promise<Outcome>;

  /** The received messages, until the connection has ended. The same as iterating over the connection itself. */
  messages(): AsyncIterableIterator<Message>;

  /**
   * Closes the connection once earlier messages have arrived, or after 5 s. Unread messages are discarded.
   */
  close(): Promise<CloseInfo>;

  stats(): ConnectionStats;

  addEventListener<K extends keyof ConnectionEventMap>(
    type: K,
    listener: (event: ConnectionEventMap[K]) => void,
    options?: AddEventListenerOptions | boolean,
  ): void;
  removeEventListener<K extends keyof ConnectionEventMap>(
    type: K,
    listener: (event: ConnectionEventMap[K]) => void,
    options?: EventListenerOptions | boolean,
  ): void;
}
