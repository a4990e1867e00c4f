/** Datagrams on a path that does not carry every length. */

/** The id of RakNet's first request, whose length tells the server which MTU the client proposes. */
const REQUEST_1 = 0x05;
/** The id and the magic, and the version of the protocol. */
const REQUEST_1_LEAST = 18;

/**
 * The datagram as a path takes it; `undefined` if it does not. The first request of RakNet is padded to the MTU that it
 * proposes, so that it is cut, and the server proposes no more than what arrives.
 */
export function fit(datagram: Uint8Array, longest: number): Uint8Array | undefined {
  if (datagram.length <= longest) {
    return datagram;
  }
  return datagram[0] === REQUEST_1 && longest >= REQUEST_1_LEAST ? datagram.subarray(0, longest) : undefined;
}
