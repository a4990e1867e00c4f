/** This machine by its name, which browsers take for both loopback addresses (RFC 6761 section 6.3), of which a relay may have one. */

const LOCALHOST = /^(.+\.)?localhost$/;

/** The hosts of URLs that such a name stands for; none for another host. */
export function loopbackHosts(host: string): string[] {
  return LOCALHOST.test(host) ? ["127.0.0.1", "[::1]"] : [];
}
