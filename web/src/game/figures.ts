/** How everything looks: one drawing for each kind, shared by all of that kind. Units are tiles. */

import { GraphicsContext } from "pixi.js";

/** Colours that are told apart without their hue, too: they alternate between light and dark. */
const COLOURS = [0x1257c7, 0xf2b705, 0x8b1e3f, 0x56c3ea, 0x5b2a86, 0xf28c38, 0x0d6b4f, 0xf5a6c8] as const;

export const colourOf = (owner: number): number => COLOURS[(owner - 1) % COLOURS.length] ?? COLOURS[0];

const INK = 0x1b2a38;

const shadow = (context: GraphicsContext, width: number): GraphicsContext =>
  context.ellipse(0, 0, width, width * 0.42).fill({ color: INK, alpha: 0.22 });

export const tree = shadow(new GraphicsContext(), 0.5)
  .rect(-0.09, -0.4, 0.18, 0.42)
  .fill(0x6b4a2f)
  .poly([-0.52, -0.3, 0, -1.15, 0.52, -0.3])
  .fill(0x1f5f45)
  .poly([-0.42, -0.75, 0, -1.55, 0.42, -0.75])
  .fill(0x2a7455)
  .poly([-0.3, -1.2, 0, -1.9, 0.3, -1.2])
  .fill(0x358a66)
  .poly([-0.15, -1.55, 0, -1.9, 0.15, -1.55, 0.05, -1.6, -0.05, -1.52])
  .fill(0xf7fbff)
  .poly([-0.36, -0.88, -0.25, -1.08, -0.12, -0.95, 0.02, -1.02, 0.1, -0.9])
  .fill({ color: 0xf7fbff, alpha: 0.9 });

export const mushroom = shadow(new GraphicsContext(), 0.3)
  .roundRect(-0.1, -0.3, 0.2, 0.32, 0.06)
  .fill(0xf3e6d2)
  .ellipse(0, -0.34, 0.29, 0.17)
  .fill(0xb3262a)
  .circle(-0.12, -0.37, 0.045)
  .circle(0.06, -0.42, 0.04)
  .circle(0.15, -0.32, 0.035)
  .fill(0xffffff);

const players = new Map<number, GraphicsContext>();

export function player(owner: number): GraphicsContext {
  const colour = colourOf(owner);
  let context = players.get(colour);
  if (context === undefined) {
    context = shadow(new GraphicsContext(), 0.42)
      .roundRect(-0.34, -0.74, 0.68, 0.74, 0.22)
      .fill(colour)
      .stroke({ color: INK, width: 0.05 })
      .circle(0, -0.92, 0.27)
      .fill(0xf6d2b3)
      .stroke({ color: INK, width: 0.05 })
      .poly([-0.28, -0.98, 0.28, -0.98, 0.2, -1.22, -0.2, -1.22])
      .fill(colour)
      .stroke({ color: INK, width: 0.05 })
      .circle(0, -1.26, 0.1)
      .fill(0xffffff)
      .circle(-0.09, -0.9, 0.035)
      .circle(0.09, -0.9, 0.035)
      .fill(INK)
      .roundRect(-0.3, -0.74, 0.6, 0.12, 0.05)
      .fill(0xffffff);
    players.set(colour, context);
  }
  return context;
}

/** What lies under the own player. */
export const ring = new GraphicsContext().ellipse(0, 0, 0.62, 0.3).stroke({ color: 0xffffff, width: 0.09 });

/** What lies under an object that is within reach. */
export const mark = new GraphicsContext().ellipse(0, 0, 0.55, 0.26).stroke({ color: 0xffd43b, width: 0.08 });
