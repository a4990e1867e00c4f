/**
 * Local Network Access (https://wicg.github.io/local-network-access/): a browser lets a page of the public network reach the
 * local one, or this machine, only with the permission of its player, and only if the page is in a secure context.
 */

import type { ErrorCode } from "../errors.js";
import { RakwireError } from "../errors.js";
import { beforeAbort } from "../waits.js";

/** The address spaces with a permission of their own, the more private one last. */
const SPACES = ["local", "loopback"] as const;
type Space = (typeof SPACES)[number];

const LOOPBACK = /^((.+\.)?localhost|127(\.\d+){3}|\[::1\])$/;
/** Addresses of RFC 1918, 3927, 4193, 4291 and 6598; names of RFC 6762 and 8375, `internal`, and names without a dot. */
const LOCAL =
  /^((10|100\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7])|169\.254|172\.(1[6-9]|2\d|3[01])|192\.168)(\.\d+){2,3}|\[f([cd]\w\w|e[89ab]\w):.+|.+\.(local|internal|lan|home\.arpa)|[^.:]+)$/;

/** How long the browser may take to say how it decides. */
const QUERY_MS = 1_000;
/** The errors of attempts that the browser may have refused, or not decided about. */
const UNDECIDED: readonly ErrorCode[] = ["relay-unreachable", "timeout", "no-answer"];

/** The address space of a host, as far as its name shows it. */
function addressSpace(hostname: string): Space | undefined {
  return LOOPBACK.test(hostname) ? "loopback" : LOCAL.test(hostname) ? "local" : undefined;
}

/** The URL of this page; none in a program. The location of a worker is a blob, whose origin is that of its page. */
function page(): URL | undefined {
  const origin = globalThis.location?.origin;
  // That of a frame without a URL of its own is `null`.
  return origin === undefined || origin === "null" ? undefined : new URL(origin);
}

/**
 * The address space that a request is for. A page of `https` may use `http` in the local network, and for a host whose address does
 * not show that it has to say so. Loopback addresses show it, and other requests need not.
 */
export function targetAddressSpace({ protocol, hostname }: URL): RequestInit {
  const isMixed = protocol === "http:" && page()?.protocol === "https:" && !LOOPBACK.test(hostname);
  // TypeScript does not know the member yet.
  return (isMixed ? { targetAddressSpace: "local" } : {}) as RequestInit;
}

/**
 * How the browser decides about a space; `undefined` if it does not ask for permission. Chrome 142 has one permission, which holds for
 * requests but not for a WebSocket: there it is at most a hint. Later versions have two.
 */
async function permission(space: Space): Promise<PermissionState | undefined> {
  const query = async (name: string): Promise<PermissionState | undefined> => {
    try {
      return (await navigator.permissions.query({ name: name as PermissionName })).state;
    } catch {
      // The browser does not know the name.
      return undefined;
    }
  };
  return (await query(`${space}-network`)) ?? ((await query("local-network-access")) === undefined ? undefined : "prompt");
}

/** The space of a relay, if it is more private than that of the page. */
function foreignSpace(relay: URL, from: URL): Space | undefined {
  const [space, own] = [relay, from].map(({ hostname }) => addressSpace(hostname));
  return space !== undefined && (own === undefined || SPACES.indexOf(own) < SPACES.indexOf(space)) ? space : undefined;
}

/**
 * Settles as an attempt to reach a relay does, with an error that names the permission that the page lacks. It is
 * `local-network-refused` where that is certain: a page that is not in a secure context has no permission in the network of its
 * relay either, and data channels of a known `fingerprint` need none.
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
  const [code, text] = isCertain ? ["local-network-refused" as const, "the browser refuses this page the local network"] : [error.code, error.message];
  const how = `from the public network a page of https reaches ${url.host} once its player permits that to the browser`;
  const { relayCode } = error;
  return new RakwireError(code, `${text}; ${how}; a frame needs allow="local-network; loopback-network; local-network-access"`, {
    cause: error,
    ...(relayCode !== undefined && { relayCode }),
  });
}

/** This machine by its name, which browsers take for both loopback addresses (RFC 6761 section 6.3), of which a relay may have one. */
const LOCALHOST = /^(.+\.)?localhost$/;

/** The hosts of URLs that such a name stands for; none for another host. */
export function loopbackHosts(host: string): string[] {
  return LOCALHOST.test(host) ? ["127.0.0.1", "[::1]"] : [];
}
