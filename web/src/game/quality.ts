/** The quality of drawing, which is reduced on slow machines so that drawing does not delay the game. */

import type { Application } from "pixi.js";

/** True if the user prefers reduced motion, for which the frame rate is lower. */
export const REDUCED_MOTION = matchMedia("(prefers-reduced-motion: reduce)").matches;
/** True with `?quality=low` in the URL, which selects a low quality from the first frame on. */
const IS_LOW = new URLSearchParams(location.search).get("quality") === "low";

/** Antialiasing is expensive without a GPU, and cannot be switched off later. */
export const ANTIALIAS = !IS_LOW;

/** The quality levels from the finest: frames per second, and the fraction of the full resolution. */
const LEVELS = [
  { fps: 60, part: 1 },
  { fps: 30, part: 1 },
  { fps: 15, part: 0.75 },
  { fps: 8, part: 0.75 },
  { fps: 4, part: 0.5 },
  { fps: 2, part: 0.35 },
] as const;
const REDUCED_MOTION_LEVEL = 2;
const LOW_LEVEL = 3;
/** The level from which the page shows the notice that drawing is slow. */
const SLOW_LEVEL = 4;
/** The time in milliseconds for which a level is measured before it may change. */
const TRIAL_MS = 2_000;
/** The factor by which frames may exceed their planned duration before the quality is reduced. */
const TOLERANCE = 1.6;
/**
 * The frame duration in milliseconds above which only a few frames are measured, because such frames leave the main
 * thread little time for the network.
 */
const LONG_FRAME_MS = 200;
/** The minimum number of such frames before the quality is reduced. */
const LONG_FRAMES = 3;

export const FULL_RESOLUTION = Math.min(devicePixelRatio, 2);

export class Quality {
  readonly #app: Application;
  #level = IS_LOW ? LOW_LEVEL : REDUCED_MOTION ? REDUCED_MOTION_LEVEL : 0;
  #spent = 0;
  #frames = 0;
  #wasHidden = false;

  constructor(app: Application) {
    this.#app = app;
    this.#apply();
    app.ticker.add(({ elapsedMS }) => this.#measure(elapsedMS));
  }

  /** The quality level; 0 is the highest quality. */
  get level(): number {
    return this.#level;
  }

  /** True if the machine draws so slowly that the page shows a notice. */
  get isSlow(): boolean {
    return this.#level >= SLOW_LEVEL;
  }

  #measure(elapsedMs: number): void {
    // A hidden page draws nothing, and its first frame after that is not representative.
    if (this.#wasHidden || document.hidden) {
      this.#wasHidden = document.hidden;
      this.#spent = 0;
      this.#frames = 0;
      return;
    }
    this.#spent += elapsedMs;
    this.#frames += 1;
    const target = 1_000 / (LEVELS[this.#level]?.fps ?? 60);
    const isLong = this.#frames >= LONG_FRAMES && this.#spent > this.#frames * Math.max(LONG_FRAME_MS, target * TOLERANCE);
    if (this.#spent < TRIAL_MS && !isLong) {
      return;
    }
    if (this.#spent / this.#frames > target * TOLERANCE && this.#level + 1 < LEVELS.length) {
      this.#level += 1;
      this.#apply();
    }
    this.#spent = 0;
    this.#frames = 0;
  }

  #apply(): void {
    const { fps, part } = LEVELS[this.#level] ?? LEVELS[0];
    // Zero means the refresh rate of the screen.
    this.#app.ticker.maxFPS = this.#level === 0 ? 0 : fps;
    const { width, height } = this.#app.screen;
    this.#app.renderer.resize(width, height, FULL_RESOLUTION * part);
  }
}
