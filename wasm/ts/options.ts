/** Checks caller options and applies timeouts. */

import type { ErrorCode } from "./errors.js";
import { RakwireError } from "./errors.js";
import { readCarriers } from "./transport/race.js";
import type { TransportSettings } from "./transport/transport.js";
import { checkToken, directTransport, targetUrl } from "./transport/transport.js";
import { isFingerprint } from "./transport/webrtc.js";
import type { ConnectOptions, MemoryOptions, Protocol } from "./types.js";
import {
  DEFAULT_PROTOCOL_VERSION,
  DEFAULT_TIMEOUT_MS,
  MAX_BLOCK_SIZE,
  MAX_BLOCKS,
  MAX_PASSWORD_BYTES,
  MAX_PROGRESS_INTERVAL,
  MAX_TIMEOUT_MS,
  VERSION_WAIT_MS,
  VERSION_WAIT_PART,
} from "./types.js";

/** The settings of a peer. */
export interface PeerSettings {
  protocol: Protocol;
  protocolVersion: number;
  /** The time limit in milliseconds for a pong with the server's protocol version; with 0, no ping is sent. */
  versionWaitMs?: number;
  progressInterval: number;
  password: Uint8Array;
  memory: MemoryOptions;
  /** In milliseconds; 0 selects the default. */
  silenceTimeoutMs: number;
  /** In bits per second; 0 means no limit. */
  outgoingLimit: number;
  /**
   * The key material of a secure connection: the expected server identity and the client identity. `undefined` if not
   * encrypted.
   */
  security?: Uint8Array;
}

/** The settings of a session. */
export interface SessionSettings extends PeerSettings {
  transport: TransportSettings;
  /** True to close the connection when the page is left. */
  endWithPage?: boolean;
}

const MAX_OUTGOING_LIMIT = Number.MAX_SAFE_INTEGER;

/** Checks that a number is an integer within these bounds. */
export function readInteger(name: string, value: number, least: number, most: number): number {
  if (!Number.isInteger(value) || value < least || value > most) {
    throw new RakwireError("bad-option", `${name} must be ${least} to ${most}, not ${String(value)}`);
  }
  return value;
}

/** Checks that a number is a positive integer; returns 0 if it is omitted. */
export function readOptional(name: string, value: number | undefined, most: number): number {
  return value === undefined ? 0 : readInteger(name, value, 1, most);
}

function readTimeout(timeoutMs: number): number {
  return readInteger("timeoutMs", timeoutMs, 0, MAX_TIMEOUT_MS);
}

/** The options of `connect`. */
const CONNECT_OPTIONS = [
  "target",
  "token",
  "fingerprint",
  "transport",
  "resume",
  "endWithPage",
  "protocol",
  "protocolVersion",
  "progressInterval",
  "password",
  "memory",
  "silenceTimeoutMs",
  "outgoingLimit",
  "signal",
  "timeoutMs",
  "wasm",
  "webSocket",
  "worker",
];

/** The names of options that only contain a signal. */
export const WAIT_OPTIONS = ["signal"];
export const SEND_OPTIONS = ["reliability", "channel", "priority"];
export const RECEIPT_OPTIONS = /* @__PURE__ */ SEND_OPTIONS.concat(WAIT_OPTIONS);
export const READY_OPTIONS = /* @__PURE__ */ RECEIPT_OPTIONS.concat("length");
export const STATS_OPTIONS = /* @__PURE__ */ WAIT_OPTIONS.concat("intervalMs");

/**
 * Throws if an option has an unknown name, because a misspelled option would be ignored. It allocates nothing, since it
 * runs for every message.
 */
export function checkNames(options: object | undefined, known: readonly string[]): void {
  for (const name in options) {
    if (Object.hasOwn(options, name) && !known.includes(name)) {
      throw new RakwireError("bad-option", `unknown option ${name}; there are ${known.join(", ")}`);
    }
  }
}

/**
 * Options of the entry `rakwire/secure`. Other entries refuse them, because ignoring them would connect unencrypted.
 */
const SECURE_OPTIONS = ["serverKey", "identity", "identityData", "connectToken"] as const;

/** Reads the settings of a session. `only` is the protocol of an entry that supports a single one. */
export function readSettings(url: string | URL, options: ConnectOptions, only?: Protocol): SessionSettings {
  const { protocol = only ?? "raknet", protocolVersion = "auto", progressInterval = 0 } = options;
  const { timeoutMs = DEFAULT_TIMEOUT_MS } = options;
  if (protocol !== "raknet" && protocol !== "game") {
    throw new RakwireError("bad-option", `protocol must be raknet or game, not ${String(protocol)}`);
  }
  if (only !== undefined && protocol !== only) {
    throw new RakwireError("bad-option", `this entry has only the protocol ${only}; use the connect of rakwire`);
  }
  const secure = SECURE_OPTIONS.find((name) => (options as Record<string, unknown>)[name] !== undefined);
  if (secure !== undefined) {
    throw new RakwireError("bad-option", `${secure} needs the connect of rakwire/secure`);
  }
  checkNames(options, [...CONNECT_OPTIONS, ...SECURE_OPTIONS]);
  const password = readBytes("password", options.password, MAX_PASSWORD_BYTES);
  if (protocol === "game" && password.length > 0) {
    throw new RakwireError("bad-option", "the Game Protocol has no password; send it as a message");
  }
  if (protocol === "game" && options.outgoingLimit !== undefined) {
    throw new RakwireError("bad-option", "the Game Protocol has no outgoingLimit");
  }
  const isAuto = protocolVersion === "auto";
  return {
    protocol,
    protocolVersion: isAuto ? DEFAULT_PROTOCOL_VERSION : readInteger("protocolVersion", protocolVersion, 0, 255),
    versionWaitMs: isAuto ? Math.min(VERSION_WAIT_MS, timeoutMs * VERSION_WAIT_PART) : 0,
    progressInterval: readInteger("progressInterval", progressInterval, 0, MAX_PROGRESS_INTERVAL),
    password,
    memory: readMemory(options.memory),
    silenceTimeoutMs: readOptional("silenceTimeoutMs", options.silenceTimeoutMs, MAX_TIMEOUT_MS),
    outgoingLimit: readOptional("outgoingLimit", options.outgoingLimit, MAX_OUTGOING_LIMIT),
    transport: readTransport(url, options),
    endWithPage: options.endWithPage !== false,
  };
}

type RelayOptions = Pick<ConnectOptions, "target" | "token" | "fingerprint" | "resume" | "webSocket" | "transport">;

/** Reads the transport settings from the options of a caller. */
export function readTransport(
  url: string | URL,
  { target, token, fingerprint, resume = true, webSocket, transport = "auto" }: RelayOptions,
): TransportSettings {
  const address = targetUrl(url, target);
  const isDirect = directTransport(address) !== undefined;
  checkToken(token);
  if (fingerprint !== undefined && !isFingerprint(fingerprint)) {
    throw new RakwireError("bad-option", "fingerprint must be 32 pairs of hexadecimal digits");
  }
  const carriers = isDirect ? [] : readCarriers(transport, webSocket);
  return {
    url: address.href,
    carriers,
    resume,
    ...(token !== undefined && { token }),
    ...(fingerprint !== undefined && { fingerprint }),
    ...(webSocket !== undefined && { webSocket }),
  };
}

/** Converts text or bytes to bytes, at most `most`. */
export function readBytes(name: string, value: string | Uint8Array = "", most: number): Uint8Array {
  const bytes = typeof value === "string" ? new TextEncoder().encode(value) : value;
  if (!(bytes instanceof Uint8Array) || bytes.length > most) {
    throw new RakwireError("bad-option", `${name} must be a string or a Uint8Array of at most ${most} bytes`);
  }
  return bytes;
}

export function readMemory(memory: MemoryOptions = {}): MemoryOptions {
  const { blocks, blockSize } = memory;
  checkNames(memory, ["blocks", "blockSize"]);
  return {
    ...(blocks !== undefined && { blocks: readInteger("memory.blocks", blocks, 4, MAX_BLOCKS) }),
    ...(blockSize !== undefined && { blockSize: readInteger("memory.blockSize", blockSize, 32, MAX_BLOCK_SIZE) }),
  };
}

/**
 * Runs `work` with a signal that is aborted by `signal` or after `timeoutMs`.
 *
 * @throws RakwireError with `code` and `message` on timeout.
 */
export async function withDeadline<T>(
  signal: AbortSignal | undefined,
  timeoutMs: number,
  [code, message]: [ErrorCode, string],
  work: (deadline: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  const timeout = controller.signal;
  // Unlike this timer, `AbortSignal.timeout` does not keep a process alive.
  const timer = setTimeout(() => controller.abort(), readTimeout(timeoutMs));
  const deadline = signal === undefined ? timeout : AbortSignal.any([signal, timeout]);
  try {
    return await work(deadline);
  } catch (error) {
    throw timeout.aborted && error === timeout.reason ? new RakwireError(code, message) : error;
  } finally {
    clearTimeout(timer);
  }
}
