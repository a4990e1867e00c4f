/**
 * Instantiates a compiled WebAssembly module, and reads its records, texts and counters. Only numbers are passed
 * between JavaScript and Rust, which avoids the glue code that wasm-bindgen generates for other types.
 */

/** The indices of the text paragraphs in `src/npm/texts/`. */
export const FAILURES = 0;
export const ENDS = 1;
export const ERRORS = 2;
export const DROPS = 3;
/** The size in bytes of the four numbers that precede the bytes of a record. */
export const HEADER = 16;

/** The kinds of events, as in `src/npm/record.rs`. */
export const CONNECTED = 1;
export const FAILED = 2;
export const ENDED = 3;
export const MESSAGE = 4;
export const RECEIPT = 5;
export const SENDING = 6;
export const RECEIVING = 7;
export const MTU = 9;

/** The result for an event if memory ran out, as in `src/npm/record.rs`. */
export const EVENT_WITHOUT_MEMORY = 1;

/** The size of the datagram buffer in bytes, larger than any UDP datagram. */
export const MAX_DATAGRAM = 65_536;

/** The functions of a class in Rust. All except `create` take the value returned by `create` as the first argument. */
export interface RustPeer {
  /** Returns 0 if memory ran out. */
  create(
    a: bigint,
    b: bigint,
    c: bigint,
    d: bigint,
    blocks: number,
    blockSize: number,
    silenceTimeoutMs: number,
    protocolVersion: number,
    progressInterval: number,
    outgoingLimit: number,
  ): number;
  reserve(peer: number, length: number): number;
  connect(peer: number, length: number, now: number): number;
  handle(peer: number, length: number, now: number): void;
  handleTimeout(peer: number, now: number): void;
  disconnect(peer: number, now: number): void;
  pollTransmit(peer: number, now: number): number;
  pollEvent(peer: number): number;
  pollTimeout(peer: number): number;
  isOver(peer: number): number;
  send(peer: number, length: number, delivery: number, now: number): number;
  canSend(peer: number, length: number, delivery: number): number;
  stats(peer: number): number;
  texts(peer: number): number;
  setCarrier(peer: number, isStream: 0 | 1): void;
  internalAddresses?(peer: number): number;
  serverGuid?(peer: number): number;
  securePeer?(peer: number): number;
  /** Returns 0 if the bytes are invalid. */
  secure?(peer: number, length: number): number;
  /** Like `create`, followed by the four parts of the handshake's random seed. */
  createSecure?(...numbers: [...Parameters<RustPeer["create"]>, bigint, bigint, bigint, bigint]): number;
  free(peer: number, ownership: 0): void;
}

/**
 * The functions of a server in Rust. All except `create` take the value returned by `create` as the first argument.
 * Some take the slot of a connection as the second.
 */
export interface RustServer {
  /** Returns 0 if memory ran out. */
  create(
    a: bigint,
    b: bigint,
    c: bigint,
    d: bigint,
    connections: number,
    blocks: number,
    blockSize: number,
    silenceTimeoutMs: number,
    maxPerAddress: number,
    maxPerNetwork: number,
  ): number;
  reserve(server: number, length: number): number;
  setPassword(server: number, length: number): number;
  setAdvertisement(server: number, length: number): number;
  handle(server: number, length: number, now: number): void;
  handleTimeout(server: number, now: number): void;
  pollTransmit(server: number, now: number): number;
  pollTimeout(server: number): number;
  /** Returns -1 if no connection has an event. */
  pollReadable(server: number): number;
  serverStats(server: number): number;
  texts(server: number): number;
  pollEvent(server: number, connection: number): number;
  client(server: number, connection: number): number;
  isOver(server: number, connection: number): number;
  disconnect(server: number, connection: number, now: number): void;
  send(server: number, connection: number, length: number, delivery: number, now: number): number;
  canSend(server: number, connection: number, length: number, delivery: number): number;
  stats(server: number, connection: number): number;
  forget(server: number, connection: number): void;
  free(server: number, ownership: 0): void;
}

/** The functions of a private key in Rust. */
export interface RustKeyPair {
  create(a: bigint, b: bigint, c: bigint, d: bigint): number;
  publicKey(pair: number): number;
  free(pair: number, ownership: 0): void;
}

/**
 * The exports of a WebAssembly module as declared by wasm-bindgen. Classes that the module does not contain are absent.
 */
type Exports = Partial<
  typeof import("../pkg/rakwire-exports.js") & typeof import("../pkg/secure-exports.js") & typeof import("../pkg/server-exports.js")
>;

/** The memory of the WebAssembly, and a class for each protocol that both the module and the entry support. */
export interface Rust {
  memory: WebAssembly.Memory;
  raknet?: RustPeer | undefined;
  game?: RustPeer | undefined;
  keyPair?: RustKeyPair | undefined;
  server?: RustServer | undefined;
}

/** Selects the classes of an entry from the exports. A module contains either all functions of a class or none. */
export type Classes = (wasm: Exports) => Omit<Rust, "memory">;

export function instantiate(module: WebAssembly.Module, classes: Classes): Rust {
  const imports: Record<string, Record<string, () => void>> = {};
  for (const { module: from, name } of WebAssembly.Module.imports(module)) {
    (imports[from] ??= {})[name] = name.includes("throw") ? fail : () => undefined;
  }
  const wasm = new WebAssembly.Instance(module, imports).exports as unknown as Exports;
  wasm.__wbindgen_start?.();
  return { memory: wasm.memory as WebAssembly.Memory, ...classes(wasm) };
}

/** Called by Rust when it detects a caller mistake. */
function fail(): void {
  throw new Error("a peer was used after its end");
}

export const gameClasses: Classes = (wasm) => ({
  game: wasm.__wbg_gameprotocolpeer_free && ({
    create: wasm.gameprotocolpeer_create,
    reserve: wasm.gameprotocolpeer_reserve,
    connect: wasm.gameprotocolpeer_connect,
    handle: wasm.gameprotocolpeer_handle,
    handleTimeout: wasm.gameprotocolpeer_handleTimeout,
    disconnect: wasm.gameprotocolpeer_disconnect,
    pollTransmit: wasm.gameprotocolpeer_pollTransmit,
    pollEvent: wasm.gameprotocolpeer_pollEvent,
    pollTimeout: wasm.gameprotocolpeer_pollTimeout,
    isOver: wasm.gameprotocolpeer_isOver,
    send: wasm.gameprotocolpeer_send,
    canSend: wasm.gameprotocolpeer_canSend,
    stats: wasm.gameprotocolpeer_stats,
    texts: wasm.gameprotocolpeer_texts,
    setCarrier: wasm.gameprotocolpeer_setCarrier,
    free: wasm.__wbg_gameprotocolpeer_free,
  } as RustPeer),
});

export const raknetClasses: Classes = (wasm) => ({
  raknet: wasm.__wbg_raknetpeer_free && ({
    create: wasm.raknetpeer_create,
    reserve: wasm.raknetpeer_reserve,
    connect: wasm.raknetpeer_connect,
    handle: wasm.raknetpeer_handle,
    handleTimeout: wasm.raknetpeer_handleTimeout,
    disconnect: wasm.raknetpeer_disconnect,
    pollTransmit: wasm.raknetpeer_pollTransmit,
    pollEvent: wasm.raknetpeer_pollEvent,
    pollTimeout: wasm.raknetpeer_pollTimeout,
    isOver: wasm.raknetpeer_isOver,
    send: wasm.raknetpeer_send,
    canSend: wasm.raknetpeer_canSend,
    stats: wasm.raknetpeer_stats,
    texts: wasm.raknetpeer_texts,
    setCarrier: wasm.raknetpeer_setCarrier,
    internalAddresses: wasm.raknetpeer_internalAddresses,
    serverGuid: wasm.raknetpeer_serverGuid,
    securePeer: wasm.raknetpeer_securePeer,
    secure: wasm.raknetpeer_secure,
    createSecure: wasm.raknetpeer_createSecure,
    free: wasm.__wbg_raknetpeer_free,
  } as RustPeer),
});

/** Selects the classes of both protocols. */
export const peerClasses: Classes = (wasm) => ({ ...raknetClasses(wasm), ...gameClasses(wasm) });

export const secureClasses: Classes = (wasm) => ({
  ...raknetClasses(wasm),
  keyPair: wasm.__wbg_keypair_free && ({
    create: wasm.keypair_create,
    publicKey: wasm.keypair_publicKey,
    free: wasm.__wbg_keypair_free,
  } as RustKeyPair),
});

export const serverClasses: Classes = (wasm) => ({
  server: wasm.__wbg_raknetserver_free && ({
    create: wasm.raknetserver_create,
    reserve: wasm.raknetserver_reserve,
    setPassword: wasm.raknetserver_setPassword,
    setAdvertisement: wasm.raknetserver_setAdvertisement,
    handle: wasm.raknetserver_handle,
    handleTimeout: wasm.raknetserver_handleTimeout,
    pollTransmit: wasm.raknetserver_pollTransmit,
    pollTimeout: wasm.raknetserver_pollTimeout,
    pollReadable: wasm.raknetserver_pollReadable,
    serverStats: wasm.raknetserver_serverStats,
    texts: wasm.raknetserver_texts,
    pollEvent: wasm.raknetserver_pollEvent,
    client: wasm.raknetserver_client,
    isOver: wasm.raknetserver_isOver,
    disconnect: wasm.raknetserver_disconnect,
    send: wasm.raknetserver_send,
    canSend: wasm.raknetserver_canSend,
    stats: wasm.raknetserver_stats,
    forget: wasm.raknetserver_forget,
    free: wasm.__wbg_raknetserver_free,
  } as RustServer),
});

/** The texts of reasons and errors in Rust, by paragraph and number: each has a code and a text. */
export type Texts = readonly (readonly (readonly [code: string, text: string])[])[];

/** Decodes texts; empty if memory ran out for them. */
export function readTexts(bytes: Uint8Array | undefined): Texts {
  if (!bytes?.length) {
    return [];
  }
  const paragraphs = new TextDecoder().decode(bytes).split("\n\n");
  return paragraphs.map((paragraph) =>
    paragraph.split("\n").map((line) => {
      const [code = ""] = line.split(" ", 1);
      return [code, line.slice(code.length + 1)];
    }),
  );
}

/** The names of drop reasons. */
export function dropNames(texts: Texts): string[] {
  return (texts[DROPS] ?? []).map(([name]) => name);
}

/** Copies the bytes of a record; empty if the address is 0, which means that memory ran out. */
export function recordAt(memory: WebAssembly.Memory, at: number): Uint8Array<ArrayBuffer> {
  const length = at && new DataView(memory.buffer).getUint32(at + 12, true);
  return new Uint8Array(memory.buffer as ArrayBuffer).slice(at + HEADER, at + HEADER + length);
}

/** The names of the statistics in the order of Rust. The last two belong to the whole peer. */
const NAMES = [
  "roundTripMs",
  "pingMs",
  "lowestPingMs",
  "congestionWindow",
  "inFlight",
  "bytesWaiting",
  "mtu",
  "messagesSent",
  "messagesReceived",
  "datagramsSent",
  "datagramsReceived",
  "datagramsLost",
  "datagramsLate",
  "datagramsAcknowledged",
  "clockDifferenceMs",
  "bytesSentLastSecond",
  "bytesReceivedLastSecond",
  "lossLastSecond",
  "maxMessageLength",
  "bytesSent",
  "bytesReceived",
] as const;

type Name = (typeof NAMES)[number];
/** The statistics that only RakNet has. */
type OfRakNet = "clockDifferenceMs" | "bytesSentLastSecond" | "bytesReceivedLastSecond" | "lossLastSecond";

/** The statistics of a peer. */
export type PeerStats = Record<Exclude<Name, OfRakNet>, number> &
  Partial<Record<OfRakNet, number>> & { drops: Record<string, number> };

/**
 * Converts the numbers of a peer to an object. The numbers after the statistics are drop counts in the order of
 * `dropNames`.
 */
export function describeStats(numbers: ArrayLike<number>, dropNames: readonly string[]): PeerStats {
  const stats = { drops: {} } as PeerStats;
  NAMES.forEach((name, index) => {
    const number = numbers[index] ?? 0;
    // Rust writes NaN for an unknown number.
    if (!Number.isNaN(number)) {
      stats[name] = number;
    }
  });
  dropNames.forEach((name, index) => {
    const times = numbers[NAMES.length + index] ?? 0;
    if (times > 0) {
      stats.drops[name] = times;
    }
  });
  return stats;
}
