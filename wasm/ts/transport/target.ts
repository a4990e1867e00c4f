/** Where a connection leads: a target of a relay, or a server itself. */

import { RakwireError } from "../errors.js";
import { readDirectUrl } from "./transport.js";

/** An address without a scheme, which a page would take for a path, and of which `new URL` takes the host for the scheme. */
const WITHOUT_SCHEME = /^([\w.-]+|\[[\da-f:.]+\]):\d+(\/|$)/i;

/** The URL for a transport. Pages may use http or a relative path for the relay; `udp:` leads to a server itself. */
export function targetUrl(url: string | URL, target: string | undefined): URL {
  if (WITHOUT_SCHEME.test(String(url))) {
    throw new RakwireError("bad-option", `the address of the relay has no scheme: write ws://${url} or wss://`);
  }
  let address: URL;
  try {
    address = new URL(readDirectUrl(url), globalThis.location?.href);
  } catch (cause) {
    throw new RakwireError("bad-option", `the address of the relay is not a URL: ${url}`, { cause });
  }
  if (address.protocol === "udp:") {
    return withPort(address);
  }
  address.protocol = address.protocol.replace(/^http/, "ws");
  if (address.protocol !== "ws:" && address.protocol !== "wss:") {
    throw new RakwireError("bad-option", `the address of the relay must begin with ws:// or wss://: ${url}`);
  }
  if (address.username !== "" || address.password !== "") {
    throw new RakwireError("bad-option", "browsers send no password of a URL; give the option token");
  }
  if (typeof target !== "string" || target === "") {
    throw new RakwireError("bad-option", "a target is required: the name of the game server at the relay");
  }
  address.hash = "";
  address.searchParams.set("target", target);
  // The relay knows at once that nothing listens where the server should be, by ICMP.
  address.searchParams.set("unreachable", "close");
  return address;
}

/** What a subprotocol of a WebSocket may be made of. */
const TOKEN = /^[\w.~-]+$/;

export function checkToken(token: string | undefined): void {
  if (token !== undefined && !TOKEN.test(token)) {
    throw new RakwireError("bad-option", "a token has only letters, digits and -._~");
  }
}

function withPort(address: URL): URL {
  if (address.port === "" || address.hostname === "") {
    throw new RakwireError("bad-option", `the address of a server is udp://HOST:PORT, not ${address.href}`);
  }
  return address;
}
