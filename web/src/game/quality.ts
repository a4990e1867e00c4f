/** The quality of drawing, which is reduced on slow machines so that drawing does not delay the game. */

import type { Application } from "pixi.js";

/** With reduced motion the frame rate is lower. */
export const REDUCED_MOTION = matchMedia("(prefers-reduced-motion: reduce)").matches;
/** `?quality=low` in the URL: the lowest quality from the first frame on. */
const IS_LOW = new URLSearchParams(location.search).get("quality") === "low";

/** Antialiasing is expensive without a GPU, and cannot be switched off later. */
export const ANTIALIAS = !IS_LOW;

/** Frames per second and the fraction of the full resolution, from the finest level. */
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
/** From this level on the page reports that drawing is slow. */
const SLOW_LEVEL = 4;
/** The time for which a level is measured before it changes. */
const TRIAL_MS = 2_000;
/** The factor by which frames may take longer before the level is reduced. */
const TOLERANCE = 1.6;
/** Frames this long leave the main thread little time for the network, so they are measured only briefly. */
const LONG_FRAME_MS = 200;
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

  /** The level; 0 is the finest. */
  get level(): number {
    return this.#level;
  }

  /** Set if the machine draws so slowly that the player should be informed. */
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
