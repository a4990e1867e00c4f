/** One entity, as this peer has it. */

import { RakwireError } from "../errors.js";
import type { EntityClass } from "./schema.js";
import type { Name, State } from "./wire.js";
import { truncate } from "./wire.js";

/** More than any index. */
const GENERATION = 65_536;

/** An entity, and what nobody but its plugin changes. */
export class Entity implements State {
  readonly index: number;
  readonly generation: number;
  readonly class: number;
  term: number;
  /** This peer says how it is. */
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

  /** Whether this peer says how it is. */
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
