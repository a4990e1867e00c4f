/** The drawings of all kinds of figures. Figures of a kind share a drawing. */

import { GraphicsContext } from "pixi.js";

/** The units per tile in drawings. The number is large, because PixiJS draws small curves with few vertices. */
export const UNITS = 100;

/** The colours of players. They alternate between light and dark, so that they also differ in brightness. */
const COLOURS = [0x1257c7, 0xf2b705, 0x8b1e3f, 0x56c3ea, 0x5b2a86, 0xf28c38, 0x0d6b4f, 0xf5a6c8] as const;

export const colourOf = (owner: number): number => COLOURS[(owner - 1) % COLOURS.length] ?? COLOURS[0];

const INK = 0x1b2a38;
const SNOW = 0xf7fbff;

/** Creates a shadow on the ground. */
const shadow = (width: number): GraphicsContext =>
  new GraphicsContext().ellipse(0, 0, width, width * 0.42).fill({ color: INK, alpha: 0.22 });

export const shadows = { tree: shadow(50), mushroom: shadow(30), player: shadow(42) } as const;

export const tree = new GraphicsContext()
  .rect(-9, -40, 18, 42)
  .fill(0x6b4a2f)
  .poly([-52, -30, 0, -115, 52, -30])
  .fill(0x1f5f45)
  .poly([-42, -75, 0, -155, 42, -75])
  .fill(0x2a7455)
  .poly([-30, -120, 0, -190, 30, -120])
  .fill(0x358a66)
  .poly([-15, -155, 0, -190, 15, -155, 5, -161, -5, -152])
  .poly([-42, -75, -27, -103, -14, -84, -26, -88])
  .poly([52, -30, 35, -58, 22, -42, 36, -44])
  .fill(SNOW);

export const mushroom = new GraphicsContext()
  .roundRect(-10, -30, 20, 32, 6)
  .fill(0xf3e6d2)
  .ellipse(0, -34, 29, 17)
  .fill(0xb3262a)
  .circle(-12, -37, 4.5)
  .circle(6, -42, 4)
  .circle(15, -32, 3.5)
  .fill(0xffffff);

const players = new Map<number, GraphicsContext>();

export function player(owner: number): GraphicsContext {
  const colour = colourOf(owner);
  let context = players.get(colour);
  if (context === undefined) {
    context = new GraphicsContext()
      .roundRect(-34, -74, 68, 74, 22)
      .fill(colour)
      .stroke({ color: INK, width: 5 })
      .circle(0, -92, 27)
      .fill(0xf6d2b3)
      .stroke({ color: INK, width: 5 })
      .poly([-29, -98, 29, -98, 20, -122, -20, -122])
      .fill(colour)
      .stroke({ color: INK, width: 5, join: "round" })
      .circle(0, -126, 10)
      .fill(0xffffff)
      .stroke({ color: INK, width: 3 })
      .circle(-9, -89, 3.5)
      .circle(9, -89, 3.5)
      .fill(INK)
      .roundRect(-30, -73, 60, 12, 5)
      .fill(0xffffff);
    players.set(colour, context);
  }
  return context;
}

/** The marker of the own player. */
export const ring = new GraphicsContext().ellipse(0, 0, 62, 30).stroke({ color: 0x1257c7, width: 8 });

/** The marker of an object within reach. */
export const mark = new GraphicsContext().ellipse(0, 0, 55, 26).stroke({ color: 0xe08a00, width: 8 });
