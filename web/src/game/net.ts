/** The connection of the game: passes messages between the WebAssembly client and the server. */

import { connect } from "rakwire";
import type { Connection, ConnectionStats } from "rakwire";
import { attach } from "rakwire/plugin";
import type { KnownServer } from "rakwire/secure";
import { worker } from "rakwire/worker";

import type { Game } from "../../../snowfight/wasm/pkg/snowfight_wasm.js";

export type Transport = "game" | "raknet";

/** The first byte of this game's messages in RakNet. */
const MESSAGE_ID = 0x86;
/** The first byte of the server's replication messages (docs/plugins/replication.md#messages). */
const UPDATE_ID = 130;
/**
 * True if the connection runs in a worker, because drawing keeps the main thread busy. `?worker=no` disables the worker
 * for comparison.
 */
const USES_WORKER = new URLSearchParams(location.search).get("worker") !== "no";
/** The relay's target for each protocol. */
const TARGETS: Readonly<Record<Transport, string>> = { game: "snowfight", raknet: "snowfight-raknet" };

/** The hash of the server's key from the link to this page; `undefined` if the link has none. */
const NAMED_KEY = readNamedKey(new URLSearchParams(location.search).get("key"));

/**
 * The verified identity of the server of a secure connection, and whether the link to this page contains its key hash.
 */
export interface SecureServer {
  server: KnownServer;
  isNamed: boolean;
}

export interface NetOwner {
  onWon(): void;
  onLost(): void;
  onJoined(player: number): void;
  onRejected(reason: string): void;
  onClosed(reason: string): void;
}

export class Net {
  readonly #game: Game;
  readonly #connection: Connection;
  readonly #transport: Transport;
  /** `undefined` if the connection is plain. */
  readonly secure: SecureServer | undefined;

  private constructor(game: Game, { connection, secure }: Opened, transport: Transport, owner: NetOwner) {
    this.secure = secure;
    this.#game = game;
    this.#connection = connection;
    this.#transport = transport;
    if (transport === "raknet") {
      attach(connection, { ids: [UPDATE_ID], onMessage: ({ bytes }) => this.#onReplication(bytes) });
    }
    connection.addEventListener("message", ({ message: { bytes } }) => this.#onMessage(bytes, owner));
    void connection.closed.then(({ reason }) => owner.onClosed(reason));
  }

  static async open(game: Game, transport: Transport, isSecure: boolean, owner: NetOwner): Promise<Net> {
    const opened = isSecure && transport === "raknet" ? await openSecure() : await openPlain(transport);
    const net = new Net(game, opened, transport, owner);
    game.connected();
    net.flush();
    return net;
  }

  /** Sends the queued messages of the client. */
  flush(): void {
    for (let message = this.#game.pollMessage(); message !== undefined; message = this.#game.pollMessage()) {
      const { bytes, reliable } = message;
      message.free();
      this.#send(bytes, reliable);
    }
  }

  stats(): ConnectionStats {
    return this.#connection.stats();
  }

  close(): void {
    void this.#connection.close();
  }

  #send(bytes: Uint8Array, reliable: boolean): void {
    try {
      if (this.#transport === "game") {
        this.#connection.send(bytes, { reliability: reliable ? "reliable" : "unreliable" });
        return;
      }
      const message = new Uint8Array(bytes.length + 1);
      message[0] = MESSAGE_ID;
      message.set(bytes, 1);
      this.#connection.send(message, { reliability: reliable ? "reliable-ordered" : "unreliable" });
    } catch {
      // Ignored: a closed connection reports its end by an event, and an action that does not fit into a full queue is
      // repeated.
    }
  }

  #onReplication(bytes: Uint8Array): void {
    this.#game.handleReplication(bytes);
    const answer = this.#game.pollReplication();
    if (answer !== undefined) {
      try {
        this.#connection.send(answer, { reliability: "unreliable" });
      } catch {
        // Ignored as for other messages, because a later answer repeats the contents.
      }
    }
  }

  #onMessage(bytes: Uint8Array, owner: NetOwner): void {
    if (this.#transport === "raknet" && bytes[0] !== MESSAGE_ID) {
      return;
    }
    const body = this.#transport === "raknet" ? bytes.subarray(1) : bytes;
    const update = this.#game.handle(body, performance.now());
    switch (update.kind) {
      case "joined":
        owner.onJoined(update.player);
        break;
      case "won":
        owner.onWon();
        break;
      case "lost":
        owner.onLost();
        break;
      case "rejected":
        owner.onRejected(update.reason);
        break;
      case "none":
        break;
    }
  }
}

interface Opened {
  connection: Connection;
  secure: SecureServer | undefined;
}

/** Returns the key hash in the URL parameter `key`; `undefined` if the parameter is missing, empty or `any`. */
function readNamedKey(key: string | null): string | undefined {
  return key === null || key === "" || key === "any" ? undefined : key;
}

function relay(): string {
  return `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/ws`;
}

async function openPlain(transport: Transport): Promise<Opened> {
  const connection = await connect(relay(), { target: TARGETS[transport], protocol: transport, ...(USES_WORKER && { worker }) });
  return { connection, secure: undefined };
}

/** Opens a secure connection. Imports its code on demand, because most pages do not need it. */
async function openSecure(): Promise<Opened> {
  const { connect: connectSecure } = await import("rakwire/secure");
  const options = { target: TARGETS.raknet, serverKey: NAMED_KEY ?? "any", ...(USES_WORKER && { worker }) };
  const connection = await connectSecure(relay(), options);
  return { connection, secure: { server: connection.securePeer, isNamed: NAMED_KEY !== undefined } };
}
