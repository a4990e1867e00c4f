/** Addresses that a socket takes as they are. */

import type { SocketOptions } from "node:dgram";

/**
 * Takes the place of the resolver, which has nothing to do with addresses. That of Node takes one for the name of a host whose
 * interface has an underscore in its name, and leaves out the interface.
 */
export const withoutLookup: NonNullable<SocketOptions["lookup"]> = (address, _, callback) =>
  callback(null, address, address.includes(":") ? 6 : 4);
