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
/** The longest delay of a timer. */
const MAX_TIMEOUT_MS = 0x7fff_ffff;
/** More parts than any message can have. */
const MAX_PROGRESS_INTERVAL = 0xffff_ffff;

/**
 * Opens a connection to the game server that the relay at `url` offers as `options.target`.
 *
 * @throws RakwireError whose `code` and `message` name the cause, or the reason of `options.signal`.
 */
export async function connect(url: string | URL, options: ConnectOptions): Promise<Connection> {
  const settings = readSettings(url, options);
  const { signal, timeoutMs = DEFAULT_TIMEOUT_MS } = options;
  if (!Number.isInteger(timeoutMs) || timeoutMs < 0 || timeoutMs > MAX_TIMEOUT_MS) {
    throw new RakwireError("bad-option", `timeoutMs must be 0 to ${MAX_TIMEOUT_MS}, not ${String(timeoutMs)}`);
  }
  const timeout = AbortSignal.timeout(timeoutMs);
  const deadline = signal === undefined ? timeout : AbortSignal.any([signal, timeout]);
  try {
    const classes = await beforeAbort(deadline, loadPeers(options.wasm));
    for (;;) {
      const connection = await attempt(classes, settings, deadline);
      if (connection !== undefined) {
        return connection;
      }
    }
  } catch (error) {
    if (timeout.aborted && error === timeout.reason) {
      throw new RakwireError("timeout", `no connection within ${timeoutMs} ms`);
    }
    throw error;
  }
}

/**
 * Makes one attempt. It returns `undefined` if another attempt may succeed: a server of the Game Protocol ignores further
 * requests from the same port, and another WebSocket has another port at the relay.
 */
async function attempt(
  classes: PeerClasses,
  settings: SessionSettings,
  deadline: AbortSignal,
): Promise<PeerConnection | undefined> {
  const connection = new PeerConnection(classes, settings);
  try {
    await beforeAbort(deadline, connection.opened);
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
  if (!Number.isInteger(progressInterval) || progressInterval < 0 || progressInterval > MAX_PROGRESS_INTERVAL) {
    const message = `progressInterval must be 0 to ${MAX_PROGRESS_INTERVAL}, not ${String(progressInterval)}`;
    throw new RakwireError("bad-option", message);
  }
  const webSocket = options.webSocket ?? (globalThis.WebSocket as WebSocketConstructor | undefined);
  if (webSocket === undefined) {
    throw new RakwireError("no-websocket", "there is no global WebSocket; give one as the option webSocket");
  }
  return { url: relayUrl(url, target), protocol, protocolVersion, progressInterval, webSocket };
}

/** Settles as `work` does, or rejects with the reason of `signal` if that is aborted first. */
async function beforeAbort<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  signal.throwIfAborted();
  let onAbort!: () => void;
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
