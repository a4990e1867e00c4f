/** Entities as this peer has them, their places, and which records of an update apply there. */

import type { BitReader } from "../codec/bits.js";
import { RakwireError } from "../errors.js";
import type { ClassName, EntityClass, FieldName, Name, State } from "./wire.js";
import { check, MAX_FIELDS, readChanges, readGamma, readName, readValues, truncate } from "./wire.js";

/** More than any index. */
const GENERATION = 65_536;

/** An entity, with the members that only its plugin changes. */
class Entity implements State {
  readonly index: number;
  readonly generation: number;
  readonly class: number;
  term: number;
  /** True if this peer decides its values. */
  isOwner: boolean;
  readonly values: Uint32Array;
  readonly replica: Replica;

  constructor(
    index: number,
    name: Name,
    isOwner: boolean,
    values: Uint32Array,
    known: EntityClass,
    onSet: (entity: Entity) => void,
  ) {
    this.index = index;
    this.generation = name.generation;
    this.class = name.class;
    this.term = name.term;
    this.isOwner = isOwner;
    this.values = values;
    this.replica = new Replica(this, known, () => onSet(this));
  }

  /** Whether this is an entity of that name, whoever owns it. */
  is(name: Name): boolean {
    return this.generation === name.generation && this.class === name.class;
  }
}

/**
 * An entity, as this peer has it: the same object from its `created` to its `removed`, and then as it was last.
 *
 * ```ts
 * if (replica.class === "player") {
 *   sprite.position.set(replica.get("x") / 100, replica.get("y") / 100);
 * }
 * ```
 */
export class Replica<N extends string = string, F extends string = string, H = unknown> {
  /** Names it at all peers: its index, and 65,536 for each generation. */
  readonly id: number;
  /** The name of its class. */
  readonly class: N;
  /** What the application has for it, a sprite or a number of its own; `Replicas.find` finds it by that. */
  handle: H | undefined;
  readonly #entity: Entity;
  readonly #class: EntityClass;
  readonly #onSet: () => void;

  /** @internal */
  constructor(entity: Entity, known: EntityClass, onSet: () => void) {
    this.id = entity.index + GENERATION * entity.generation;
    this.class = known.name as N;
    this.#entity = entity;
    this.#class = known;
    this.#onSet = onSet;
  }

  /** True if this peer decides its values. */
  get isOwner(): boolean {
    return this.#entity.isOwner;
  }

  /** A field. */
  get(field: F): number {
    return this.#entity.values[this.#place(field)] as number;
  }

  /**
   * Changes a field of an entity that this peer owns; false if it does not, or no longer. Bits beyond the width of the field
   * are cut off. The server is told in the next microtask, of all changes at once in as few messages as hold them; so set what
   * belongs together without an `await` in between.
   */
  set(field: F, value: number): boolean {
    const place = this.#place(field);
    if (this.#entity.isOwner) {
      this.#entity.values[place] = truncate(value, (this.#class.fields[place] as { bits: number }).bits);
      this.#onSet();
    }
    return this.#entity.isOwner;
  }

  #place(field: string): number {
    const place = this.#class.places.get(field);
    if (place === undefined) {
      throw new RakwireError("bad-option", `the class ${this.class} has no field ${field}`);
    }
    return place;
  }
}

/** The index of the entity with an id. */
export function indexOf(id: number): number {
  return id % GENERATION;
}

/** An entity of any of these classes. Its `class` tells which fields it has. */
export type ReplicaOf<C, H = unknown, N extends ClassName<C> = ClassName<C>> =
  N extends ClassName<C> ? Replica<N, FieldName<C, N>, H> : never;

/** Why an entity is not here any more: it has ended, it has left the scope of this peer, or the connection has ended. */
export type RemoveReason = "destroyed" | "out-of-scope" | "disconnected";

/** A change of an entity. */
export type PlaceEvent =
  | { readonly kind: "created" | "changed" | "owner-changed"; readonly replica: Replica }
  | { readonly kind: "removed"; readonly replica: Replica; readonly reason: RemoveReason };

/** Places by the index of their entities. */
export class Places {
  /** Entities that this peer owns and has changed, and not sent to the server. */
  readonly unsent = new Set<Entity>();
  readonly #classes: readonly EntityClass[];
  readonly #onEvent: (event: PlaceEvent) => void;
  readonly #onSet: (entity: Entity) => void;
  readonly #entities: (Entity | undefined)[];
  /** The last tick that has said anything of each place. */
  readonly #ticks: Uint32Array;
  /** The tick that the entity of each place came with, or the last one went with. */
  readonly #filledAt: Uint32Array;
  /** The fields of the record that is read. */
  readonly #values = new Uint32Array(MAX_FIELDS);

  constructor(classes: readonly EntityClass[], count: number, onEvent: (event: PlaceEvent) => void, onSet: () => void) {
    this.#classes = classes;
    this.#onEvent = onEvent;
    this.#onSet = (entity) => {
      this.unsent.add(entity);
      onSet();
    };
    this.#entities = Array.from({ length: count });
    this.#ticks = new Uint32Array(count);
    this.#filledAt = new Uint32Array(count);
  }

  at(index: number): Replica | undefined {
    return this.#entities[index]?.replica;
  }

  *all(): Generator<Replica> {
    for (const entity of this.#entities) {
      if (entity !== undefined) {
        yield entity.replica;
      }
    }
  }

  /**
   * Reads the records of an update, which changes nothing unless it is applied; false if it is too late for one of them.
   *
   * @throws CodecError if they say nothing.
   */
  read(reader: BitReader, tick: number, isApplied: boolean): boolean {
    let next = 0;
    for (let count = readGamma(reader); count > 0; count--) {
      next += readGamma(reader);
      check(next <= this.#entities.length);
      if (!this.#readRecord(reader, next - 1, tick, isApplied)) {
        return false;
      }
    }
    check(reader.remaining < 8);
    return true;
  }

  /** Removes all, as the connection has ended. */
  clear(): void {
    this.#entities.forEach((_, index) => this.#remove(index, 0, "disconnected"));
    this.#ticks.fill(0);
  }

  #readRecord(reader: BitReader, index: number, tick: number, isApplied: boolean): boolean {
    if (!reader.bit()) {
      return this.#readDelta(reader, index, tick, isApplied);
    }
    if (reader.bit()) {
      const reason = reader.bit() ? "destroyed" : "out-of-scope";
      if (isApplied && this.#advance(index, tick)) {
        this.#remove(index, tick, reason);
      }
      return true;
    }
    const name = readName(reader);
    const isOwner = reader.bit();
    check(name.class < this.#classes.length);
    readValues(reader, this.#classOf(name).fields, this.#values);
    if (isApplied && this.#advance(index, tick)) {
      this.#onFull(index, tick, name, isOwner);
    }
    return true;
  }

  #readDelta(reader: BitReader, index: number, tick: number, isApplied: boolean): boolean {
    const entity = this.#entities[index];
    // Without the entity it cannot be known how long the record is.
    if (entity === undefined || tick < (this.#filledAt[index] as number)) {
      return false;
    }
    this.#values.set(entity.values);
    readChanges(reader, this.#classOf(entity).fields, this.#values);
    if (isApplied && this.#advance(index, tick) && !entity.isOwner) {
      this.#take(entity);
    }
    return true;
  }

  #classOf(name: Name): EntityClass {
    return this.#classes[name.class] as EntityClass;
  }

  /** Whether a tick is the latest to say anything of a place. */
  #advance(index: number, tick: number): boolean {
    const isLatest = tick > (this.#ticks[index] as number);
    if (isLatest) {
      this.#ticks[index] = tick;
    }
    return isLatest;
  }

  #onFull(index: number, tick: number, name: Name, isOwner: boolean): void {
    const entity = this.#entities[index];
    if (entity === undefined || !entity.is(name)) {
      this.#remove(index, tick, "destroyed");
      this.#create(index, name, isOwner);
    } else if (!(isOwner && entity.isOwner && entity.term === name.term)) {
      const isOther = entity.isOwner !== isOwner;
      [entity.term, entity.isOwner] = [name.term, isOwner];
      this.unsent.delete(entity);
      if (isOther) {
        this.#onEvent({ kind: "owner-changed", replica: entity.replica });
      }
      this.#take(entity);
    }
  }

  #create(index: number, name: Name, isOwner: boolean): void {
    const known = this.#classOf(name);
    const entity = new Entity(index, name, isOwner, this.#values.slice(0, known.fields.length), known, this.#onSet);
    const { replica } = (this.#entities[index] = entity);
    this.#onEvent({ kind: "created", replica });
    if (isOwner) {
      this.#onEvent({ kind: "owner-changed", replica });
    }
  }

  /** Gives an entity the fields that were read. */
  #take(entity: Entity): void {
    entity.values.set(this.#values.subarray(0, entity.values.length));
    this.#onEvent({ kind: "changed", replica: entity.replica });
  }

  #remove(index: number, tick: number, reason: RemoveReason): void {
    this.#filledAt[index] = tick;
    const entity = this.#entities[index];
    if (entity !== undefined) {
      this.#entities[index] = undefined;
      this.unsent.delete(entity);
      entity.isOwner = false;
      this.#onEvent({ kind: "removed", replica: entity.replica, reason });
    }
  }
}
