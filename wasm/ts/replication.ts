/** Replication: the entities of a server, as this peer has them, and those of them that it owns. */

import { BitReader } from "./codec/bits.js";
import { CodecError } from "./codec/cursor.js";
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

const MAX_ENTITIES = 1_024;
const MAX_BYTES = 1_024;
const MOST_ENTITIES = 65_536;
const MOST_BYTES = 65_536;
const MAX_NUMBER = 0xffff_ffff;
const UNRELIABLE: SendOptions = { reliability: "unreliable" };

/** What replicas are told of at their making. */
export interface ReplicasOptions<C extends EntityClasses> {
  /** The classes of the server, in the same order. */
  classes: C;
  /** How many entities there is room for; as many as the server has. Default 1,024. */
  maxEntities?: number;
  /** How many bytes a message may have, in both directions; as many as the server takes. Default 1,024. */
  maxBytes?: number;
}

/** What has become of an entity: it is here, it has changed, this peer owns it now or no longer, it is not here any more. */
export type ReplicaEvent<C, H = unknown> =
  | { readonly kind: "created" | "changed" | "owner-changed"; readonly replica: ReplicaOf<C, H> }
  | { readonly kind: "removed"; readonly replica: ReplicaOf<C, H>; readonly reason: RemoveReason };

/** Counters. */
export interface ReplicasStats {
  /** Updates that were heeded. */
  readonly updates: number;
  /** Updates that came so late that they say nothing. */
  readonly late: number;
  /** Messages that say nothing, that are too long, or of more entities than there is room for. */
  readonly malformed: number;
  /** Servers whose classes are others, and updates of them, which are dropped. */
  readonly mismatched: number;
}

/**
 * The entities of a server, as they were there in some tick. Those that this peer owns are as it says, and the server is told.
 *
 * ```ts
 * const classes = { player: { x: { bits: 16, short: 6 }, y: { bits: 16, short: 6 } } };
 * const replicas = new Replicas({ classes });
 * replicas.onEvent = ({ kind, replica }) => show(kind, replica.get("x"), replica.get("y"));
 * replicas.join(connection);
 * ```
 */
export class Replicas<C extends EntityClasses, H = unknown> {
  /** Is told what has become of entities, each time after the whole update that says so. */
  onEvent: ((event: ReplicaEvent<C, H>) => void) | undefined;
  /** Is called when the server has other classes: it is of another version of the game, and shows nothing here. */
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
  /** The server was not sent the fingerprint of the classes. */
  #owesClasses = false;
  #hasOtherClasses = false;
  /** It sends in the next microtask. */
  #isSending = false;
  /** The connection that has no room for states. */
  #blocked: Connection | undefined;
  /** The number of the last message with states. */
  #number = 0;

  /** @throws RakwireError with the code `bad-option`. */
  constructor(options: ReplicasOptions<C>) {
    const { classes, maxEntities = MAX_ENTITIES, maxBytes = MAX_BYTES } = options;
    checkNames(options, ["classes", "maxEntities", "maxBytes"]);
    this.#maxBytes = readInteger("maxBytes", maxBytes, 1, MOST_BYTES);
    this.#classes = readClasses(classes, maxBytes);
    this.#fingerprint = fingerprintOf(this.#classes);
    const count = readInteger("maxEntities", maxEntities, 1, MOST_ENTITIES);
    this.#places = new Places(this.#classes, count, (event) => this.#events.push(event), () => this.#sendLater());
  }

  /**
   * Has the entities of the server of a connection, until that has ended or {@link leave} is called.
   *
   * @throws RakwireError with the code `bad-option` if they are those of another one, or another plugin has the id.
   */
  join(connection: Connection): void {
    if (this.#connection === connection) {
      return;
    }
    if (this.#connection !== undefined) {
      throw new RakwireError("bad-option", "the entities are those of another connection; leave that first");
    }
    const plugin = { ids: [UPDATE_ID], onMessage: ({ bytes }: Message) => this.#onMessage(bytes) };
    this.#detach = attachUntilEnd(connection, plugin, () => this.leave());
    this.#connection = connection;
    this.#owesClasses = true;
    this.#sendLater();
  }

  /** Removes all entities, and takes no more. */
  leave(): void {
    this.#detach?.();
    this.#detach = this.#connection = undefined;
    this.#received = new Received();
    this.#isUnacknowledged = this.#owesClasses = this.#hasOtherClasses = false;
    this.#places.clear();
    this.#tell();
  }

  /** The entity with an id. */
  get(id: number): ReplicaOf<C, H> | undefined {
    const replica = this.#places.at(indexOf(id));
    return replica?.id === id ? (replica as ReplicaOf<C, H>) : undefined;
  }

  /** The first entity that has this of the application's. */
  find(handle: H): ReplicaOf<C, H> | undefined {
    for (const replica of this) {
      if (replica.handle === handle) {
        return replica;
      }
    }
    return undefined;
  }

  /** The entities, in the order of their indices. */
  [Symbol.iterator](): IterableIterator<ReplicaOf<C, H>> {
    return this.#places.all() as Generator<unknown> as Generator<ReplicaOf<C, H>>;
  }

  /** The latest tick of the server that has arrived; 0 is none. */
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
    this.#tell();
  }

  /** Takes an update wholly or not at all. */
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
    // Nothing of a message counts unless all of it says something.
    if (this.#received.isTooOld(tick) || !this.#places.read(new BitReader(records, "msb"), tick, false)) {
      return "late";
    }
    this.#places.read(new BitReader(records, "msb"), tick, true);
    this.#received.add(tick);
    this.#isUnacknowledged = true;
    this.#sendLater();
    return "updates";
  }

  /** The server shows its classes, and has those of this peer shown. */
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

  /** Tells of events in their order, also of those that come while it does. */
  #tell(): void {
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
      // One that finds no room is sent when the server repeats its own.
      this.#owesClasses = false;
      failureOf(() => connection.send(encodeClasses(this.#fingerprint)));
    }
    if (this.#isUnacknowledged) {
      this.#isUnacknowledged = false;
      // A lost one matters little: the next one says the same and more.
      failureOf(() => connection.send(encodeAcknowledgement(this.#received), UNRELIABLE));
    }
    this.#sendStates(connection);
  }

  /** Sends how the entities are that this peer owns, as they are when there is room. */
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

  /** Sends again when there is room, if that is what was missing. */
  #wait(connection: Connection, failure: unknown, length: number): void {
    if (!(failure instanceof RakwireError) || failure.code !== "queue-full") {
      return;
    }
    this.#blocked = connection;
    const goOn = (): void => {
      this.#blocked = undefined;
      this.#sendLater();
    };
    // It is refused when the connection ends, and then there is nobody to tell.
    connection.ready({ length }).then(goOn, () => undefined);
  }
}

/** Why something cannot be sent now; nothing if it was. */
function failureOf(send: () => void): unknown {
  try {
    send();
  } catch (error) {
    return error;
  }
  return undefined;
}
