/** Checks the options of callers. */

import { RakwireError } from "./errors.js";
import type { SessionSettings } from "./session.js";
import { relayUrl } from "./transport/websocket.js";
import type { ConnectOptions, MemoryOptions, WebSocketConstructor } from "./types.js";

const DEFAULT_PROTOCOL_VERSION = 6;
/** The longest delay of a timer. */
const MAX_TIMEOUT_MS = 0x7fff_ffff;
/** More parts than any message can have. */
const MAX_PROGRESS_INTERVAL = 0xffff_ffff;
const MAX_PASSWORD_BYTES = 255;
const MAX_BLOCKS = 0xffff;
const MAX_BLOCK_SIZE = 0xffff;

/** A whole number within these bounds. */
export function readInteger(name: string, value: number, least: number, most: number): number {
  if (!Number.isInteger(value) || value < least || value > most) {
    throw new RakwireError("bad-option", `${name} must be ${least} to ${most}, not ${String(value)}`);
  }
  return value;
}

export function readTimeout(timeoutMs: number): number {
  return readInteger("timeoutMs", timeoutMs, 0, MAX_TIMEOUT_MS);
}

/** The WebSocket class that the caller gives or the platform has. */
export function readWebSocket(given: WebSocketConstructor | undefined): WebSocketConstructor {
  const webSocket = given ?? (globalThis.WebSocket as WebSocketConstructor | undefined);
  if (webSocket === undefined) {
    throw new RakwireError("no-websocket", "there is no global WebSocket; give one as the option webSocket");
  }
  return webSocket;
}

/** The settings of a session. */
export function readSettings(url: string | URL, options: ConnectOptions): SessionSettings {
  const { target, protocol = "raknet", protocolVersion = DEFAULT_PROTOCOL_VERSION, progressInterval = 0 } = options;
  if (protocol !== "raknet" && protocol !== "game") {
    throw new RakwireError("bad-option", `protocol must be raknet or game, not ${String(protocol)}`);
  }
  const password = readPassword(options.password);
  if (protocol === "game" && password.length > 0) {
    throw new RakwireError("bad-option", "the Game Protocol has no password; send it as a message");
  }
  return {
    url: relayUrl(url, target),
    protocol,
    protocolVersion: readInteger("protocolVersion", protocolVersion, 0, 255),
    progressInterval: readInteger("progressInterval", progressInterval, 0, MAX_PROGRESS_INTERVAL),
    password,
    memory: readMemory(options.memory),
    webSocket: readWebSocket(options.webSocket),
  };
}

function readPassword(password: string | Uint8Array = ""): Uint8Array {
  const bytes = typeof password === "string" ? new TextEncoder().encode(password) : password;
  if (!(bytes instanceof Uint8Array) || bytes.length > MAX_PASSWORD_BYTES) {
    const message = `password must be a string or a Uint8Array of at most ${MAX_PASSWORD_BYTES} bytes`;
    throw new RakwireError("bad-option", message);
  }
  return bytes;
}

function readMemory({ blocks, blockSize }: MemoryOptions = {}): MemoryOptions {
  return {
    ...(blocks !== undefined && { blocks: readInteger("memory.blocks", blocks, 4, MAX_BLOCKS) }),
    ...(blockSize !== undefined && { blockSize: readInteger("memory.blockSize", blockSize, 32, MAX_BLOCK_SIZE) }),
  };
}
