/** How finely the world is drawn: less where the machine turns out to be slow, so that the game itself never waits. */

import type { Application } from "pixi.js";

/** People who want less motion get fewer pictures. */
export const IS_CALM = matchMedia("(prefers-reduced-motion: reduce)").matches;
/** `?quality=low` in the address of the page: as coarse as it gets, from the first picture on. */
const IS_LOW = new URLSearchParams(location.search).get("quality") === "low";

/** Smoothed edges cost a machine without a graphics card most of its time; they cannot be switched off later. */
export const ANTIALIAS = !IS_LOW;

/** Pictures a second and the part of the screen's own resolution, from the finest. */
const LEVELS = [
  { fps: 60, part: 1 },
  { fps: 30, part: 1 },
  { fps: 15, part: 0.75 },
  { fps: 8, part: 0.75 },
] as const;
const CALM_LEVEL = 2;
const LOW_LEVEL = 3;
/** How long a level is looked at before it is judged. */
const TRIAL_MS = 2_000;
/** A level is too fine if its pictures come so much later than they should. */
const TOLERANCE = 1.6;
/** A page that nobody looked at draws nothing; such a gap says nothing about the machine. */
const LONGEST_GAP_MS = 1_000;

export const FULL_RESOLUTION = Math.min(devicePixelRatio, 2);

export class Quality {
  readonly #app: Application;
  #level = IS_LOW ? LOW_LEVEL : IS_CALM ? CALM_LEVEL : 0;
  #spent = 0;
  #pictures = 0;

  constructor(app: Application) {
    this.#app = app;
    this.#apply();
    app.ticker.add(({ elapsedMS }) => this.#note(elapsedMS));
  }

  /** 0 is the finest. */
  get level(): number {
    return this.#level;
  }

  #note(elapsedMs: number): void {
    if (elapsedMs > LONGEST_GAP_MS) {
      return;
    }
    this.#spent += elapsedMs;
    this.#pictures += 1;
    if (this.#spent < TRIAL_MS) {
      return;
    }
    const wanted = 1_000 / (LEVELS[this.#level]?.fps ?? 60);
    if (this.#spent / this.#pictures > wanted * TOLERANCE && this.#level + 1 < LEVELS.length) {
      this.#level += 1;
      this.#apply();
    }
    this.#spent = 0;
    this.#pictures = 0;
  }

  #apply(): void {
    const { fps, part } = LEVELS[this.#level] ?? LEVELS[0];
    // No limit is the screen's own rhythm.
    this.#app.ticker.maxFPS = this.#level === 0 ? 0 : fps;
    const { width, height } = this.#app.screen;
    this.#app.renderer.resize(width, height, FULL_RESOLUTION * part);
  }
}
