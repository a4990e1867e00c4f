/**
 * Local Network Access (https://wicg.github.io/local-network-access/): a page of the public network may access the
 * local network or this machine only from a secure context and with the permission of the user.
 */

import type { ErrorCode } from "../errors.js";
import { RakwireError } from "../errors.js";
import { beforeAbort } from "../waits.js";

/** The address spaces with their own permission, the more private one last. */
const SPACES = ["local", "loopback"] as const;
type Space = (typeof SPACES)[number];

const LOOPBACK = /^((.+\.)?localhost|127(\.\d+){3}|\[::1\])$/;
/**
 * Addresses of RFC 1918, 3927, 4193, 4291 and 6598; names of RFC 6762 and 8375, `internal`, and names without a dot.
 */
const LOCAL =
  /^((10|100\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7])|169\.254|172\.(1[6-9]|2\d|3[01])|192\.168)(\.\d+){2,3}|\[f([cd]\w\w|e[89ab]\w):.+|.+\.(local|internal|lan|home\.arpa)|[^.:]+)$/;

/** Milliseconds to wait for the permission state of the browser. */
const QUERY_MS = 1_000;
/** The errors of attempts that may be due to a refused or pending permission. */
const UNDECIDED: readonly ErrorCode[] = ["relay-unreachable", "timeout", "no-answer"];

/** The address space of a host, as far as its name shows it. */
function addressSpace(hostname: string): Space | undefined {
  return LOOPBACK.test(hostname) ? "loopback" : LOCAL.test(hostname) ? "local" : undefined;
}

/**
 * The URL of this page; `undefined` outside of pages. The location of a worker is a blob with the origin of its page.
 */
function page(): URL | undefined {
  const origin = globalThis.location?.origin;
  // The origin of a frame without a URL is `null`.
  return origin === undefined || origin === "null" ? undefined : new URL(origin);
}

/**
 * The request option for the address space. A page of `https` may use `http` in the local network, but must declare it
 * for hosts if their address does not show it. Loopback addresses and other requests need no declaration.
 */
export function targetAddressSpace({ protocol, hostname }: URL): RequestInit {
  const isMixed = protocol === "http:" && page()?.protocol === "https:" && !LOOPBACK.test(hostname);
  // TypeScript does not know this member yet.
  return (isMixed ? { targetAddressSpace: "local" } : {}) as RequestInit;
}

/**
 * The permission state of a space; `undefined` if the browser has no such permission. Chrome 142 has a single
 * permission, which covers requests but not WebSockets, so it is only a hint there. Later versions have two.
 */
async function permission(space: Space): Promise<PermissionState | undefined> {
  const query = async (name: string): Promise<PermissionState | undefined> => {
    try {
      return (await navigator.permissions.query({ name: name as PermissionName })).state;
    } catch {
      // The browser does not know this permission.
      return undefined;
    }
  };
  return (await query(`${space}-network`)) ?? ((await query("local-network-access")) === undefined ? undefined : "prompt");
}

/** The address space of a relay, if it is more private than that of the page. */
function foreignSpace(relay: URL, from: URL): Space | undefined {
  const [space, own] = [relay, from].map(({ hostname }) => addressSpace(hostname));
  return space !== undefined && (own === undefined || SPACES.indexOf(own) < SPACES.indexOf(space)) ? space : undefined;
}

/**
 * Settles like an attempt to reach a relay, but names a missing permission as the cause of an error. The code is
 * `local-network-refused` if this is certain. A page outside of a secure context never has the permission, and data
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
 * Host names of this machine. Browsers resolve them to both loopback addresses (RFC 6761 section 6.3), and a relay may
 * use only one of them.
 */
const LOCALHOST = /^(.+\.)?localhost$/;

/** The loopback addresses of such a host name as hosts of URLs; empty for other hosts. */
export function loopbackHosts(host: string): string[] {
  return LOCALHOST.test(host) ? ["127.0.0.1", "[::1]"] : [];
}
