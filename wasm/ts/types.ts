/** What the public face of the package is made of. */

import type { ClosedEvent, MessageArrivedEvent, ProgressMadeEvent } from "./events.js";

/**
 * What is promised for a message.
 *
 * - `unreliable`: sent once; may be lost, may arrive out of order, never twice.
 * - `unreliable-sequenced`: sent once; one older than the newest that arrived on its channel is dropped.
 * - `reliable`: arrives once, in any order.
 * - `reliable-ordered`: arrives once, in the order sent on its channel.
 * - `reliable-sequenced`: sent again until it arrives; dropped if a newer one of its channel arrived before.
 */
export type Reliability =
  | "unreliable"
  | "unreliable-sequenced"
  | "reliable"
  | "reliable-ordered"
  | "reliable-sequenced";

/** Which message goes first when there is no room for all. It delays others and never starves them. */
export type Priority = "immediate" | "high" | "medium" | "low";

/** What the game server speaks. The Game Protocol has messages that are `reliable` or `unreliable`, in no order. */
export type Protocol = "raknet" | "game";

/** How a message is sent. */
export interface SendOptions {
  /** Default: `reliable-ordered`, with the Game Protocol `reliable`. */
  reliability?: Reliability;
  /** 0 to 31, default 0. Means nothing to messages that are neither ordered nor sequenced, nor to the Game Protocol. */
  channel?: number;
  /** Default: `medium`. Means nothing to the Game Protocol, which sends everything at once. */
  priority?: Priority;
}

/**
 * What became of a message that was sent with a receipt.
 *
 * - `acknowledged`: the server has it, all its parts.
 * - `lost`: it was sent unreliably, and no acknowledgement came. It may have arrived all the same.
 * - `unknown`: the connection ended before that was known.
 */
export type Outcome = "acknowledged" | "lost" | "unknown";

/** How far a message in parts has come. A part has about 1,400 bytes. */
export interface Progress {
  readonly direction: "sending" | "receiving";
  /** Tells it from the others that are under way in the same direction; numbers come again after 65,536. */
  readonly message: number;
  /** Parts that have arrived or were acknowledged. */
  readonly done: number;
  /** Parts in all. */
  readonly parts: number;
}

/** A message that arrived. */
export interface Message {
  /** All its bytes. The first one is its id, 0x86 or above for messages of applications. */
  readonly bytes: Uint8Array;
  readonly reliability: Reliability;
  readonly channel: number;
}

/**
 * How a connection ended.
 *
 * - `local`: `close()` was called. `remote`: the server said goodbye. `lost`: the server fell silent.
 * - `relay-closed`: the WebSocket to the relay ended.
 * - `message-too-large`, `receive-memory`: the server sent more than a connection may hold.
 * - `message-unfinished`: the server began a reliable message and never finished it.
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
  /** The same in words, with the relay's own words if it gave any. */
  readonly reason: string;
  /** The close code of the WebSocket, when the relay ended the connection. */
  readonly relayCode?: number;
}

/** Counters and measurements. Times are milliseconds, sizes bytes; all are 0 before the first sample. */
export interface ConnectionStats {
  /** Smoothed round-trip time. It contains the time that the server waits before it acknowledges. */
  readonly roundTripMs: number;
  /** Round-trip time of the last ping of the connection. */
  readonly pingMs: number;
  readonly lowestPingMs: number;
  /** How much may be under way without an acknowledgement. */
  readonly congestionWindow: number;
  /** How much is under way without an acknowledgement. */
  readonly inFlight: number;
  /** The largest datagram, with 28 bytes of IP and UDP headers. */
  readonly mtu: number;
  readonly messagesSent: number;
  readonly messagesReceived: number;
  readonly datagramsSent: number;
  readonly datagramsReceived: number;
  /** Datagrams taken for lost, whose messages were sent again. */
  readonly datagramsLost: number;
  readonly datagramsAcknowledged: number;
  readonly bytesSent: number;
  readonly bytesReceived: number;
  /** What was dropped of what arrived, by reason; only reasons that occurred. */
  readonly drops: Readonly<Record<string, number>>;
}

/** Where the WebAssembly comes from: its URL, its bytes, a response, or the compiled module. */
export type WasmSource = string | URL | BufferSource | Response | WebAssembly.Module;

/** The part of a WebSocket that this package uses. */
export interface WebSocketLike {
  binaryType: string;
  readonly bufferedAmount: number;
  addEventListener(type: string, listener: (event: any) => void): void;
  /** A `Uint8Array`. The declarations of WebSockets do not agree on a type for it. */
  send(datagram: any): void;
  close(code?: number, reason?: string): void;
}

/** A class of WebSockets, such as the browser's own or that of npm's `ws`. */
export type WebSocketConstructor = new (url: string) => WebSocketLike;

/** How to connect. */
export interface ConnectOptions {
  /** The name by which the relay knows the game server. */
  target: string;
  /** What the server speaks. Default `raknet`. */
  protocol?: Protocol;
  /** For RakNet: what the server is told: 6 is the original, 10 and 11 are Minecraft Bedrock. Default 6. */
  protocolVersion?: number;
  /** After how many parts of a large message an event `progress` tells how far it has come. Default 0, which is never. */
  progressInterval?: number;
  /** Gives up connecting. Once the connection is open, it has no effect any more. */
  signal?: AbortSignal;
  /** How long connecting may take, WebAssembly and WebSocket included. Default 15,000. */
  timeoutMs?: number;
  /** Where the WebAssembly comes from, if not from this package. The first connection decides for all. */
  wasm?: WasmSource;
  /** Instead of the global `WebSocket`, which Node before 22 does not have. */
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
 * Messages go to listeners of `message` once there is one, and otherwise wait for `for await`; a few hundred at most,
 * after which they wait in RakNet, which slows the server down.
 */
export interface Connection extends AsyncIterable<Message> {
  /** Resolves when the connection is over, whatever the reason. Never rejects. */
  readonly closed: Promise<CloseInfo>;

  /**
   * Takes a message for sending; the bytes are copied. Messages sent in one go share datagrams.
   *
   * @throws RakwireError with code `queue-full` when too much waits to be acknowledged: try again later. Others say
   * what is wrong with the message.
   */
  send(bytes: Uint8Array, options?: SendOptions): void;

  /**
   * Sends a message as {@link send} does, and resolves when it is known what became of it. That is possible for
   * `unreliable`, `reliable` and `reliable-ordered` messages.
   *
   * It may be awaited before messages are read: meanwhile up to 16 MiB of them are kept instead of a few hundred.
   *
   * @throws RakwireError as `send` does, and with code `bad-option` for sequenced messages.
   */
  sendWithReceipt(bytes: Uint8Array, options?: SendOptions): Promise<Outcome>;

  /** The messages that arrive, until the connection is over. The same as iterating the connection itself. */
  messages(): AsyncIterableIterator<Message>;

  /**
   * Ends the connection once what was sent before has arrived, within 5 s. Messages that nobody has read are lost.
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
