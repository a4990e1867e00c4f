/** The island: snowy grass, sand, and water around it (docs/game.md#land). */

import { Graphics } from "pixi.js";

const RADIUS = 30;
const LAND = 784;

const SNOW = [0xeaf2f7, 0xe3edf4, 0xeff6fa] as const;
const SAND = [0xd9c9a3, 0xd3c197] as const;
const WATER = 0x2f6f9f;
const DEEP = 0x27618c;

/** Returns a pseudorandom number for a tile. */
const scatter = (x: number, y: number): number => Math.abs((x * 7_349) ^ (y * 9_151) ^ ((x * y) << 3));

const pick = (colours: readonly number[], x: number, y: number): number => colours[scatter(x, y) % colours.length] ?? 0;

export function drawGround(): Graphics {
  const ground = new Graphics();
  ground.rect(-RADIUS * 4, -RADIUS * 4, RADIUS * 8, RADIUS * 8).fill(WATER);
  for (let y = -RADIUS; y <= RADIUS; y++) {
    for (let x = -RADIUS; x <= RADIUS; x++) {
      const square = x * x + y * y;
      const isWater = square > LAND;
      if (isWater && scatter(x, y) % 5 > 0) {
        continue;
      }
      const colour = isWater ? DEEP : pick(10 * square >= 7 * LAND ? SAND : SNOW, x, y);
      // North is up, but the y axis of the screen points down.
      ground.rect(x - 0.5, -y - 0.5, 1.01, 1.01).fill(colour);
    }
  }
  return ground;
}
