/** Opens connections. */

import type { PeerConnection } from "./connection.js";
import { withDeadline } from "./deadline.js";
import { RakwireError } from "./errors.js";
import { DEFAULT_TIMEOUT_MS, readSettings } from "./options.js";
import type { Peer, PeerSettings } from "./peer.js";
import type { SessionLike, SessionOwner, SessionSettings } from "./session.js";
import { Session } from "./session.js";
import { withPermission } from "./transport/local-network.js";
import type { Connection, ConnectOptions, Protocol } from "./types.js";
import { beforeAbort } from "./waits.js";
import type { Loaded, Wasm } from "./wasm.js";

/** Makes a peer of a connection. */
type CreatePeer = (rust: Loaded, settings: PeerSettings) => Peer;
/** Makes a connection, which starts to open. */
type ConnectionClass<C extends PeerConnection> = new (open: (owner: SessionOwner) => SessionLike) => C;

/**
 * Opens a connection with the WebAssembly of an entry, of its class, and with the peers that a function makes. The entry may have one
 * protocol `only`.
 */
export async function connectWith(
  wasm: Wasm,
  Connection: ConnectionClass<PeerConnection>,
  create: CreatePeer,
  only: Protocol | undefined,
  url: string | URL,
  options: ConnectOptions,
): Promise<Connection> {
  return openWith(wasm, readSettings(url, options, only), options, Connection, create);
}

/** Opens a connection of this class, with the peers that a function makes. */
export async function openWith<C extends PeerConnection>(
  wasm: Wasm,
  settings: SessionSettings,
  options: ConnectOptions,
  Connection: ConnectionClass<C>,
  create: CreatePeer,
): Promise<C> {
  const { signal, timeoutMs = DEFAULT_TIMEOUT_MS, worker } = options;
  if (worker !== undefined && settings.transport.webSocket !== undefined) {
    throw new RakwireError("bad-option", "a worker uses its own WebSocket; leave out webSocket or worker");
  }
  const connecting = withDeadline(signal, timeoutMs, ["timeout", `no connection within ${timeoutMs} ms`], async (deadline) => {
    const loaded = await beforeAbort(deadline, wasm.load(options.wasm));
    const open = (owner: SessionOwner): SessionLike =>
      worker?.open(loaded.module, settings, owner) ?? new Session(create(loaded, settings), settings, owner);
    for (;;) {
      const connection = await attempt(new Connection(open), settings.protocol, deadline);
      if (connection !== undefined) {
        return connection;
      }
    }
  });
  const { url, fingerprint } = settings.transport;
  return withPermission(connecting, url, fingerprint);
}

/**
 * Makes one attempt. It returns `undefined` if another attempt may succeed: a server of the Game Protocol ignores further
 * requests from the same port, and another WebSocket has another port at the relay.
 */
async function attempt<C extends PeerConnection>(
  connection: C,
  protocol: Protocol,
  deadline: AbortSignal,
): Promise<C | undefined> {
  try {
    await beforeAbort(deadline, connection.opened);
    return connection;
  } catch (error) {
    connection.cancel();
    if (protocol === "game" && error instanceof RakwireError && error.code === "no-answer") {
      return undefined;
    }
    throw error;
  }
}
