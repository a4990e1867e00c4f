/**
 * Local Network Access (https://wicg.github.io/local-network-access/). Browsers let a page from the public network
 * access the local network or the local machine only in a secure context and with the user's permission.
 */

import type { ErrorCode } from "../errors.js";
import { RakwireError } from "../errors.js";
import { beforeAbort } from "../waits.js";

/** The address spaces that have their own permission. The more private one is last. */
const SPACES = ["local", "loopback"] as const;
type Space = (typeof SPACES)[number];

const LOOPBACK = /^((.+\.)?localhost|127(\.\d+){3}|\[::1\])$/;
/**
 * Local addresses of RFC 1918, 3927, 4193, 4291 and 6598, names of RFC 6762 and 8375, `internal`, and names without a
 * dot.
 */
const LOCAL =
  /^((10|100\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7])|169\.254|172\.(1[6-9]|2\d|3[01])|192\.168)(\.\d+){2,3}|\[f([cd]\w\w|e[89ab]\w):.+|.+\.(local|internal|lan|home\.arpa)|[^.:]+)$/;

/** The time limit in milliseconds for querying the permission state of the browser. */
const QUERY_MS = 1_000;
/** Errors that may be caused by a denied or pending permission. */
const UNDECIDED: readonly ErrorCode[] = ["relay-unreachable", "timeout", "no-answer"];

/** Returns the address space that follows from a host name; `undefined` if none does. */
function addressSpace(hostname: string): Space | undefined {
  return LOOPBACK.test(hostname) ? "loopback" : LOCAL.test(hostname) ? "local" : undefined;
}

/**
 * Returns the URL of this page; `undefined` outside of pages. A worker's location is a `blob:` URL with the origin of
 * its page.
 */
function page(): URL | undefined {
  const origin = globalThis.location?.origin;
  // The origin is `null` in a frame without a URL.
  return origin === undefined || origin === "null" ? undefined : new URL(origin);
}

/**
 * Returns the `fetch` option for the address space. An `https` page may send `http` requests to the local network, but
 * must declare them if the host is not a local address literal. Loopback addresses and other requests need no
 * declaration.
 */
export function targetAddressSpace({ protocol, hostname }: URL): RequestInit {
  const isMixed = protocol === "http:" && page()?.protocol === "https:" && !LOOPBACK.test(hostname);
  // TypeScript does not declare this member yet.
  return (isMixed ? { targetAddressSpace: "local" } : {}) as RequestInit;
}

/**
 * Returns the permission state for a space; `undefined` if the browser has no such permission. Chrome 142 has a single
 * permission, which covers requests but not WebSockets, so there it is only a hint. Later versions have two
 * permissions.
 */
async function permission(space: Space): Promise<PermissionState | undefined> {
  const query = async (name: string): Promise<PermissionState | undefined> => {
    try {
      return (await navigator.permissions.query({ name: name as PermissionName })).state;
    } catch {
      // The browser does not support this permission.
      return undefined;
    }
  };
  return (await query(`${space}-network`)) ?? ((await query("local-network-access")) === undefined ? undefined : "prompt");
}

/** Returns the address space of a relay if it is more private than that of the page; otherwise `undefined`. */
function foreignSpace(relay: URL, from: URL): Space | undefined {
  const [space, own] = [relay, from].map(({ hostname }) => addressSpace(hostname));
  return space !== undefined && (own === undefined || SPACES.indexOf(own) < SPACES.indexOf(space)) ? space : undefined;
}

/**
 * Settles like an attempt to reach a relay, but reports a missing permission as the cause of an error. The code is
 * `local-network-refused` if that is certain. A page outside of a secure context never has the permission. Data
 * channels with a known `fingerprint` need none.
 */
export async function withPermission<T>(attempt: Promise<T>, url: string, fingerprint?: string): Promise<T> {
  try {
    return await attempt;
  } catch (error) {
    throw await explain(error, new URL(url), fingerprint);
  }
}

async function explain(error: unknown, url: URL, fingerprint: string | undefined): Promise<unknown> {
  const from = page();
  if (from === undefined || !(error instanceof RakwireError && UNDECIDED.includes(error.code))) {
    return error;
  }
  const space = foreignSpace(url, from);
  const state = space && (await beforeAbort(AbortSignal.timeout(QUERY_MS), permission(space)).catch(() => undefined));
  const isRefused = state === "denied" && error.code === "relay-unreachable";
  if (!isRefused && state !== "prompt") {
    return error;
  }
  const isCertain = isRefused && isSecureContext && fingerprint === undefined;
  const [code, text] = isCertain ? ["local-network-refused" as const, "the browser denies access to the local network"] : [error.code, error.message];
  const how = `to reach ${url.host}, the page needs https and the permission of its user`;
  const { relayCode } = error;
  return new RakwireError(code, `${text}; ${how}, and a frame allow="local-network; loopback-network; local-network-access"`, {
    cause: error,
    ...(relayCode !== undefined && { relayCode }),
  });
}

/**
 * Host names of the local machine. Browsers resolve them to both loopback addresses (RFC 6761 section 6.3), but a relay
 * may listen on only one of them.
 */
const LOCALHOST = /^(.+\.)?localhost$/;

/** Returns the loopback addresses of a host name of the local machine, as hosts of URLs; empty for other hosts. */
export function loopbackHosts(host: string): string[] {
  return LOCALHOST.test(host) ? ["127.0.0.1", "[::1]"] : [];
}
