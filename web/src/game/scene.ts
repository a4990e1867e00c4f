/** The scene from the WebAssembly: twelve numbers per entity. */

const FIELDS = 12;

export type Kind = "tree" | "mushroom" | "player";
const KINDS: readonly Kind[] = ["tree", "mushroom", "player"];

export interface Figure {
  id: number;
  kind: Kind;
  x: number;
  y: number;
  z: number;
  /** The remaining durability, 0 to 1; `undefined` once the object is loose. */
  durability: number | undefined;
  health: number;
  maxHealth: number;
  /** The id of the player that a figure of the kind `player` belongs to. */
  owner: number;
  holding: number | undefined;
  breaking: number | undefined;
}

/** The maximum number of hearts to draw. */
const MAX_HEARTS = 10;

/** Returns how many hearts to draw, and how many of them are full. */
export function hearts({ health, maxHealth }: Figure): { full: number; most: number } {
  const most = Math.min(maxHealth, MAX_HEARTS);
  return { full: Math.min(health, most), most };
}

const optional = (value: number): number | undefined => (value < 0 ? undefined : value);

/** Reads a scene. Entities without a finite position, which a hostile server can send, are skipped. */
export function readScene(numbers: Float64Array): Figure[] {
  const figures: Figure[] = [];
  for (let at = 0; at + FIELDS <= numbers.length; at += FIELDS) {
    const [id = 0, kind = 0, x = 0, y = 0, z = 0, durability = 0, health = 0, most = 0, owner = 0, holding = -1, breaking = -1] =
      numbers.subarray(at, at + FIELDS);
    if (![x, y, z].every(Number.isFinite)) {
      continue;
    }
    figures.push({
      id,
      kind: KINDS[kind] ?? "tree",
      x,
      y,
      z,
      durability: optional(durability),
      health,
      maxHealth: most,
      owner,
      holding: optional(holding),
      breaking: optional(breaking),
    });
  }
  return figures;
}
