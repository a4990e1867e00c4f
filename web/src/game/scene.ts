/** What there is to draw, as the WebAssembly tells it: twelve numbers for each entity. */

const FIELDS = 12;

export type Kind = "tree" | "mushroom" | "player";
const KINDS: readonly Kind[] = ["tree", "mushroom", "player"];

export interface Figure {
  id: number;
  kind: Kind;
  x: number;
  y: number;
  z: number;
  /** How much it still resists, 0 to 1; nothing once it is loose. */
  durability: number | undefined;
  health: number;
  mostHealth: number;
  /** Whose body it is. */
  owner: number;
  holding: number | undefined;
  breaking: number | undefined;
}

/** The most hearts that are drawn, whatever a server says. */
const MOST_HEARTS = 10;

/** How many hearts to draw, and how many of them are full. */
export function hearts({ health, mostHealth }: Figure): { full: number; most: number } {
  const most = Math.min(mostHealth, MOST_HEARTS);
  return { full: Math.min(health, most), most };
}

const optional = (value: number): number | undefined => (value < 0 ? undefined : value);

/** Reads a scene; what is nowhere, as a hostile server may say, is left out: the camera would follow it for ever. */
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
      mostHealth: most,
      owner,
      holding: optional(holding),
      breaking: optional(breaking),
    });
  }
  return figures;
}
