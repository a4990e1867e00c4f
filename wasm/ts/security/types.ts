/** The public types of secure connections. */

import type { Connection, ConnectOptions } from "../types.js";

/** What a page stores of a server after a connection, to trust it the next time. */
export interface KnownServer {
  /** The public key that the server has: `rakwire-public-key-1:` and 43 characters. */
  readonly key: string;
  /** The hash of the key that it will have next, if it has announced one. */
  readonly next?: string;
}

/** A private key, and its public one. Who has the private key can pretend to be its owner. */
export interface KeyPair {
  /** `rakwire-private-key-1:` and 43 characters. */
  readonly privateKey: string;
  /** `rakwire-public-key-1:` and 43 characters. */
  readonly publicKey: string;
}

/** How to connect in a secure connection: with `serverKey`, or with a `connectToken`, which names the key of the server. */
export interface SecureConnectOptions extends Omit<ConnectOptions, "protocol"> {
  /** Secure connections are those of RakNet. */
  protocol?: "raknet";
  /**
   * Whom the server has to be:
   *
   * - its public key or the hash of that, as `rakwire keygen` prints them; of the hash the 32 characters of a URL will do;
   * - a {@link KnownServer}, which {@link SecureConnection.securePeer} was in an earlier connection;
   * - `any`, which protects against who only listens. Store `securePeer` then, and give it the next time.
   */
  serverKey?: string | KnownServer;
  /** The key with which the client identifies itself: a pair, or the private key as text or in 32 bytes. Default: none. */
  identity?: KeyPair | string | Uint8Array;
  /** What the server gets with {@link identity}, encrypted with it and bound to it: a text or bytes, at most 95 bytes. Default: nothing. */
  identityData?: string | Uint8Array;
  /**
   * What a backend has made for the player with {@link identity}: `rakwire-connect-token-1:` and what follows. The server is
   * the only one that the token names, or the one that it calls as {@link ConnectOptions.target} does, or `HOST:PORT` as the URL.
   */
  connectToken?: string;
}

/** An open secure connection. */
export interface SecureConnection extends Connection {
  /** Whom the server has shown to be, also when the connection has ended. */
  readonly securePeer: KnownServer;
}
