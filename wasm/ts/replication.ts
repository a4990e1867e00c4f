/** Replication: local copies of the entities of a server, and the entities that this peer owns. */

import { BitReader, CodecError } from "./codec/cursor.js";
import { RakwireError } from "./errors.js";
import { report } from "./events.js";
import { checkNames, readInteger } from "./options.js";
import { attachUntilEnd } from "./plugin/connection.js";
import type { PlaceEvent, RemoveReason, ReplicaOf } from "./replication/replica.js";
import { indexOf, Places } from "./replication/replica.js";
import type { EntityClass, EntityClasses } from "./replication/wire.js";
import {
  encodeAcknowledgement,
  encodeClasses,
  encodeStates,
  fingerprintOf,
  HEADER,
  readClasses,
  readFingerprint,
  Received,
  UPDATE_ID,
} from "./replication/wire.js";
import type { Connection, Message, SendOptions } from "./types.js";

export { RakwireError } from "./errors.js";
export type { ErrorCode, RakwireErrorOptions } from "./errors.js";
export type { RemoveReason, Replica, ReplicaOf } from "./replication/replica.js";
export type { ClassName, EntityClasses, Field, FieldName } from "./replication/wire.js";

const DEFAULT_MAX_ENTITIES = 1_024;
const DEFAULT_MAX_BYTES = 1_024;
const MAX_ENTITIES = 65_536;
const MAX_BYTES = 65_536;
const MAX_NUMBER = 0xffff_ffff;
const UNRELIABLE: SendOptions = { reliability: "unreliable" };

/** The settings of {@link Replicas}. */
export interface ReplicasOptions<C extends EntityClasses> {
  /** The entity classes, in the same order as at the server. */
  classes: C;
  /** The maximum number of entities. It must equal that of the server. Default: 1,024. */
  maxEntities?: number;
  /** The maximum message size in bytes, in both directions. It must equal that of the server. Default: 1,024. */
  maxBytes?: number;
}

/** A change of an entity: it was created, changed or removed, or this peer gained or lost its ownership. */
export type ReplicaEvent<C, H = unknown> =
  | { readonly kind: "created" | "changed" | "owner-changed"; readonly replica: ReplicaOf<C, H> }
  | { readonly kind: "removed"; readonly replica: ReplicaOf<C, H>; readonly reason: RemoveReason };

/** Counters of replication. */
export interface ReplicasStats {
  /** Updates from the server that were applied. */
  readonly updates: number;
  /** Updates that were dropped because a newer update had been applied. */
  readonly late: number;
  /** Messages that could not be decoded, were too long, or named more entities than allowed. */
  readonly malformed: number;
  /** Fingerprints of servers with different classes, and their updates, all of which are dropped. */
  readonly mismatched: number;
}

/**
 * The entities of a server at a recent tick. An entity that this peer owns keeps the values set locally, which are sent
 * to the server.
 *
 * ```ts
 * const classes = { player: { x: { bits: 16, short: 6 }, y: { bits: 16, short: 6 } } };
 * const replicas = new Replicas({ classes });
 * replicas.onEvent = ({ kind, replica }) => show(kind, replica.get("x"), replica.get("y"));
 * replicas.join(connection);
 * ```
 */
export class Replicas<C extends EntityClasses, H = unknown> {
  /** Called for each change, after the whole update was applied. */
  onEvent: ((event: ReplicaEvent<C, H>) => void) | undefined;
  /**
   * Called if the server has different classes, because it runs another version of the game. Its entities are then not
   * available.
   */
  onMismatch: (() => void) | undefined;
  readonly #classes: readonly EntityClass[];
  readonly #fingerprint: bigint;
  readonly #maxBytes: number;
  readonly #places: Places;
  readonly #events: PlaceEvent[] = [];
  readonly #stats = { updates: 0, late: 0, malformed: 0, mismatched: 0 };
  #isTelling = false;
  #connection: Connection | undefined;
  #detach: (() => void) | undefined;
  #received = new Received();
  #isUnacknowledged = false;
  /** True until the fingerprint of the classes was sent to the server. */
  #owesClasses = false;
  #hasOtherClasses = false;
  /** True if changes will be sent in the next microtask. */
  #isSending = false;
  /** The connection with too little send memory for states. */
  #blocked: Connection | undefined;
  /** The number of the last message with states. */
  #number = 0;

  /** @throws RakwireError with the code `bad-option`. */
  constructor(options: ReplicasOptions<C>) {
    const { classes, maxEntities = DEFAULT_MAX_ENTITIES, maxBytes = DEFAULT_MAX_BYTES } = options;
    checkNames(options, ["classes", "maxEntities", "maxBytes"]);
    this.#maxBytes = readInteger("maxBytes", maxBytes, 1, MAX_BYTES);
    this.#classes = readClasses(classes, maxBytes);
    this.#fingerprint = fingerprintOf(this.#classes);
    const count = readInteger("maxEntities", maxEntities, 1, MAX_ENTITIES);
    this.#places = new Places(this.#classes, count, (event) => this.#events.push(event), () => this.#sendLater());
  }

  /**
   * Receives the entities of the server, until the connection closes or {@link leave} is called.
   *
   * @throws RakwireError with the code `bad-option` if another connection has joined, or another plugin has the message
   * id.
   */
  join(connection: Connection): void {
    if (this.#connection === connection) {
      return;
    }
    if (this.#connection !== undefined) {
      throw new RakwireError("bad-option", "another connection has joined; call leave first");
    }
    const plugin = { ids: [UPDATE_ID], onMessage: ({ bytes }: Message) => this.#onMessage(bytes) };
    this.#detach = attachUntilEnd(connection, plugin, () => this.leave());
    this.#connection = connection;
    this.#owesClasses = true;
    this.#sendLater();
  }

  /** Leaves the connection and removes all entities. */
  leave(): void {
    this.#detach?.();
    this.#detach = this.#connection = undefined;
    this.#received = new Received();
    this.#isUnacknowledged = this.#owesClasses = this.#hasOtherClasses = false;
    this.#places.clear();
    this.#dispatch();
  }

  /** Returns the entity with an id; `undefined` if there is none. */
  get(id: number): ReplicaOf<C, H> | undefined {
    const replica = this.#places.at(indexOf(id));
    return replica?.id === id ? (replica as ReplicaOf<C, H>) : undefined;
  }

  /** Returns the first entity with a handle; `undefined` if there is none. */
  find(handle: H): ReplicaOf<C, H> | undefined {
    for (const replica of this) {
      if (replica.handle === handle) {
        return replica;
      }
    }
    return undefined;
  }

  /** Iterates over the entities in the order of their indices. */
  [Symbol.iterator](): IterableIterator<ReplicaOf<C, H>> {
    return this.#places.all() as Generator<unknown> as Generator<ReplicaOf<C, H>>;
  }

  /** The latest tick received from the server; 0 before the first. */
  get tick(): number {
    return this.#received.latest;
  }

  stats(): ReplicasStats {
    return { ...this.#stats };
  }

  #onMessage(bytes: Uint8Array): void {
    const counter = this.#take(bytes);
    if (counter !== undefined) {
      this.#stats[counter] += 1;
    }
    this.#dispatch();
  }

  /** Applies an update completely or not at all. */
  #take(bytes: Uint8Array): keyof ReplicasStats | undefined {
    try {
      return bytes.length > this.#maxBytes ? "malformed" : this.#read(bytes);
    } catch (error) {
      if (error instanceof CodecError) {
        return "malformed";
      }
      throw error;
    }
  }

  #read(bytes: Uint8Array): keyof ReplicasStats | undefined {
    const header = new BitReader(bytes, "msb");
    header.bits(8);
    const tick = header.bits(32);
    if (tick === 0) {
      return this.#compareClasses(readFingerprint(bytes));
    }
    if (this.#hasOtherClasses) {
      return "mismatched";
    }
    const records = bytes.subarray(HEADER);
    // A message is applied only if it is valid as a whole.
    if (this.#received.isTooOld(tick) || !this.#places.read(new BitReader(records, "msb"), tick, false)) {
      return "late";
    }
    this.#places.read(new BitReader(records, "msb"), tick, true);
    this.#received.add(tick);
    this.#isUnacknowledged = true;
    this.#sendLater();
    return "updates";
  }

  /** Compares the fingerprint of the server with the local one, and sends the local one. */
  #compareClasses(fingerprint: bigint | undefined): "malformed" | "mismatched" | undefined {
    if (fingerprint === undefined) {
      return "malformed";
    }
    this.#owesClasses = true;
    this.#sendLater();
    this.#hasOtherClasses = fingerprint !== this.#fingerprint;
    if (!this.#hasOtherClasses) {
      return undefined;
    }
    try {
      this.onMismatch?.();
    } catch (error) {
      report(error);
    }
    return "mismatched";
  }

  /** Dispatches events in order, including events added while dispatching. */
  #dispatch(): void {
    if (this.#isTelling) {
      return;
    }
    this.#isTelling = true;
    for (const event of this.#events) {
      try {
        this.onEvent?.(event as ReplicaEvent<C, H>);
      } catch (error) {
        report(error);
      }
    }
    this.#events.length = 0;
    this.#isTelling = false;
  }

  #sendLater(): void {
    if (!this.#isSending) {
      this.#isSending = true;
      queueMicrotask(() => {
        this.#isSending = false;
        this.#send();
      });
    }
  }

  #send(): void {
    const connection = this.#connection;
    if (connection === undefined) {
      return;
    }
    if (this.#owesClasses) {
      // If it cannot be sent now, it is sent when the server repeats its own fingerprint.
      this.#owesClasses = false;
      failureOf(() => connection.send(encodeClasses(this.#fingerprint)));
    }
    if (this.#isUnacknowledged) {
      this.#isUnacknowledged = false;
      // A lost acknowledgement is harmless, because the next one repeats its contents.
      failureOf(() => connection.send(encodeAcknowledgement(this.#received), UNRELIABLE));
    }
    this.#sendStates(connection);
  }

  /** Sends the current values of the entities that this peer owns, when the connection accepts them. */
  #sendStates(connection: Connection): void {
    const { unsent } = this.#places;
    while (unsent.size > 0 && this.#number < MAX_NUMBER && this.#blocked !== connection) {
      const states = [...unsent].sort((a, b) => a.index - b.index);
      this.#number += 1;
      const { bytes, count } = encodeStates(this.#number, states, this.#classes, this.#maxBytes);
      const failure = failureOf(() => connection.send(bytes));
      if (failure !== undefined) {
        this.#wait(connection, failure, bytes.length);
        return;
      }
      states.slice(0, count).forEach((entity) => unsent.delete(entity));
    }
  }

  /** Schedules another attempt if sending failed because the send memory was full. */
  #wait(connection: Connection, failure: unknown, length: number): void {
    if (!(failure instanceof RakwireError) || failure.code !== "queue-full") {
      return;
    }
    this.#blocked = connection;
    const goOn = (): void => {
      this.#blocked = undefined;
      this.#sendLater();
    };
    // Rejects when the connection closes; nothing needs to be sent then.
    connection.ready({ length }).then(goOn, () => undefined);
  }
}

/** Returns the error of a `send`; `undefined` if it succeeded. */
function failureOf(send: () => void): unknown {
  try {
    send();
  } catch (error) {
    return error;
  }
  return undefined;
}
