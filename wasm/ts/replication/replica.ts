/** The local entities by index, and the rules for applying the records of an update. */

import type { BitReader } from "../codec/cursor.js";
import { RakwireError } from "../errors.js";
import type { ClassName, EntityClass, FieldName, Name, State } from "./wire.js";
import { check, MAX_FIELDS, readChanges, readGamma, readName, readValues, truncate } from "./wire.js";

/** The factor of the generation in an id. It is higher than any index. */
const GENERATION = 65_536;

/** An entity, with members that only this plugin may change. */
class Entity implements State {
  readonly index: number;
  readonly generation: number;
  readonly class: number;
  term: number;
  /** True if this peer owns the entity and sets its values. */
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

  /** Returns true if a name identifies this entity, regardless of its owner. */
  is(name: Name): boolean {
    return this.generation === name.generation && this.class === name.class;
  }
}

/**
 * The local copy of an entity. From its `created` event to its `removed` event it is the same object. Afterwards it
 * keeps its last values.
 *
 * ```ts
 * if (replica.class === "player") {
 *   sprite.position.set(replica.get("x") / 100, replica.get("y") / 100);
 * }
 * ```
 */
export class Replica<N extends string = string, F extends string = string, H = unknown> {
  /** The id of the entity, which is the same at all peers: its index, plus 65,536 for each generation. */
  readonly id: number;
  /** The name of its class. */
  readonly class: N;
  /**
   * A value that the application associates with the entity, such as a sprite. `Replicas.find` finds the entity by it.
   */
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

  /** True if this peer owns the entity and sets its values. */
  get isOwner(): boolean {
    return this.#entity.isOwner;
  }

  /** Returns the value of a field. */
  get(field: F): number {
    return this.#entity.values[this.#place(field)] as number;
  }

  /**
   * Changes a field of an entity that this peer owns. Returns false if it does not own the entity. Bits beyond the
   * width of the field are discarded. All changes are sent in the next microtask, in as few messages as possible, so
   * set related fields without an `await` in between.
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

/** Returns the index of the entity with an id. */
export function indexOf(id: number): number {
  return id % GENERATION;
}

/** An entity of any class. Its `class` determines its fields. */
export type ReplicaOf<C, H = unknown, N extends ClassName<C> = ClassName<C>> =
  N extends ClassName<C> ? Replica<N, FieldName<C, N>, H> : never;

/** The reason of a removal: the entity was destroyed, it left the scope of this peer, or the connection closed. */
export type RemoveReason = "destroyed" | "out-of-scope" | "disconnected";

/** A change of an entity. */
export type PlaceEvent =
  | { readonly kind: "created" | "changed" | "owner-changed"; readonly replica: Replica }
  | { readonly kind: "removed"; readonly replica: Replica; readonly reason: RemoveReason };

/** The entities by index. */
export class Places {
  /** Owned entities with changes that were not sent to the server yet. */
  readonly unsent = new Set<Entity>();
  readonly #classes: readonly EntityClass[];
  readonly #onEvent: (event: PlaceEvent) => void;
  readonly #onSet: (entity: Entity) => void;
  readonly #entities: (Entity | undefined)[];
  /** The latest tick that affected each index. */
  readonly #ticks: Uint32Array;
  /** The tick at which the current entity of each index appeared, or the previous entity disappeared. */
  readonly #filledAt: Uint32Array;
  /** The fields of the record being read. */
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
   * Reads the records of an update, and applies them if `isApplied`. Returns false if the update is too old for one of
   * its records.
   *
   * @throws CodecError if the records are invalid.
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

  /** Removes all entities, because the connection closed. */
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
    // The length of the record depends on the class of the entity.
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

  /** Records the tick of an index. Returns false if a later tick is known. */
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

  /** Copies the fields of the record to an entity. */
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
