/** Opens connections. */

import { PeerConnection } from "./connection.js";
import { RakwireError } from "./errors.js";
import type { SessionSettings } from "./session.js";
import { relayUrl } from "./transport/websocket.js";
import type { Connection, ConnectOptions, WebSocketConstructor } from "./types.js";
import type { PeerClasses } from "./wasm.js";
import { loadPeers } from "./wasm.js";

const DEFAULT_PROTOCOL_VERSION = 6;
const DEFAULT_TIMEOUT_MS = 15_000;
/** More parts than any message has. */
const MOST_PARTS = 0xffff_ffff;

/**
 * Opens a connection to the game server that the relay at `url` knows as `options.target`.
 *
 * @throws RakwireError whose `code` and `message` say who refused what, or the reason of `options.signal`.
 */
export async function connect(url: string | URL, options: ConnectOptions): Promise<Connection> {
  const settings = readSettings(url, options);
  const { signal, timeoutMs = DEFAULT_TIMEOUT_MS } = options;
  signal?.throwIfAborted();
  const patience = new Patience(signal, timeoutMs);
  try {
    const classes = await patience.race(loadPeers(options.wasm));
    for (;;) {
      const connection = await attempt(classes, settings, patience);
      if (connection !== undefined) {
        return connection;
      }
    }
  } finally {
    patience.end();
  }
}

/**
 * Tries once. Nothing means that another attempt may help: a server of the Game Protocol that has heard a client once
 * does not hear it again from the same port, and another WebSocket is another port of the relay.
 */
async function attempt(
  classes: PeerClasses,
  settings: SessionSettings,
  patience: Patience,
): Promise<PeerConnection | undefined> {
  const connection = new PeerConnection(classes, settings);
  try {
    await patience.race(connection.opened);
    return connection;
  } catch (error) {
    connection.cancel();
    if (settings.protocol === "game" && error instanceof RakwireError && error.code === "no-answer") {
      return undefined;
    }
    throw error;
  }
}

function readSettings(url: string | URL, options: ConnectOptions): SessionSettings {
  const {
    target,
    protocol = "raknet",
    protocolVersion = DEFAULT_PROTOCOL_VERSION,
    progressInterval = 0,
  } = options;
  if (protocol !== "raknet" && protocol !== "game") {
    throw new RakwireError("bad-option", `protocol must be raknet or game, not ${String(protocol)}`);
  }
  if (!Number.isInteger(protocolVersion) || protocolVersion < 0 || protocolVersion > 255) {
    throw new RakwireError("bad-option", `protocolVersion must be 0 to 255, not ${String(protocolVersion)}`);
  }
  if (!Number.isInteger(progressInterval) || progressInterval < 0 || progressInterval > MOST_PARTS) {
    const words = `progressInterval must be 0 to ${MOST_PARTS}, not ${String(progressInterval)}`;
    throw new RakwireError("bad-option", words);
  }
  const webSocket = options.webSocket ?? (globalThis.WebSocket as WebSocketConstructor | undefined);
  if (webSocket === undefined) {
    throw new RakwireError("no-websocket", "there is no global WebSocket; give one as the option webSocket");
  }
  return { url: relayUrl(url, target), protocol, protocolVersion, progressInterval, webSocket };
}

/** How long a caller waits: until a time or a signal. */
class Patience {
  readonly #isOver: Promise<never>;
  readonly #signal: AbortSignal | undefined;
  readonly #timer: ReturnType<typeof setTimeout>;
  #onAbort: () => void = () => undefined;

  constructor(signal: AbortSignal | undefined, timeoutMs: number) {
    this.#signal = signal;
    let giveUp!: (reason: unknown) => void;
    this.#isOver = new Promise((_, reject) => (giveUp = reject));
    this.#isOver.catch(() => undefined);
    this.#onAbort = () => giveUp(signal?.reason);
    signal?.addEventListener("abort", this.#onAbort);
    const words = `no connection within ${timeoutMs} ms`;
    this.#timer = setTimeout(() => giveUp(new RakwireError("timeout", words)), timeoutMs);
  }

  race<T>(work: Promise<T>): Promise<T> {
    return Promise.race([work, this.#isOver]);
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#signal?.removeEventListener("abort", this.#onAbort);
  }
}
