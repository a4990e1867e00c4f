/** Draws the world with PixiJS, seen from above and a little from the south. */

import { Application, Container, Graphics } from "pixi.js";

import { Body, RISE } from "./body.js";
import type { Layers } from "./body.js";
import * as figures from "./figures.js";
import { drawGround } from "./ground.js";
import { ANTIALIAS, FULL_RESOLUTION, REDUCED_MOTION, Quality } from "./quality.js";
import type { Figure } from "./scene.js";

/** The number of tiles along the shorter side of the window. */
const VIEW = 13;
/** The height of a held object, in tiles. */
const HOLD_HEIGHT = 1.3125;
/**
 * The fraction of the distance to the player that the camera moves per frame. With reduced motion, it moves the whole
 * distance.
 */
const FOLLOW = REDUCED_MOTION ? 1 : 0.18;

export interface Spot {
  x: number;
  y: number;
}

export class World {
  readonly #app: Application;
  readonly #quality: Quality;
  readonly #map = new Container();
  readonly #layers: Layers = {
    shadows: new Container(),
    bodies: new Container({ sortableChildren: true }),
    labels: new Container(),
  };
  readonly #ring = new Graphics(figures.ring);
  readonly #mark = new Graphics(figures.mark);
  readonly #bodies = new Map<number, Body>();
  #camera: Spot = { x: 0, y: 0 };

  private constructor(app: Application) {
    this.#app = app;
    this.#quality = new Quality(app);
    const { shadows, bodies, labels } = this.#layers;
    this.#map.addChild(drawGround(), shadows, this.#ring, this.#mark, bodies, labels);
    for (const marker of [this.#ring, this.#mark]) {
      marker.scale.set(1 / figures.UNITS);
      marker.visible = false;
    }
    app.stage.addChild(this.#map);
  }

  static async start(stage: HTMLElement): Promise<World> {
    const app = new Application();
    await app.init({ resizeTo: stage, background: 0x2f6f9f, antialias: ANTIALIAS, autoDensity: true, resolution: FULL_RESOLUTION });
    stage.append(app.canvas);
    return new World(app);
  }

  /** Draws the scene. `own` is the player of this page, and `target` an object within reach. */
  draw(scene: readonly Figure[], own: Figure | undefined, target: Figure | undefined): void {
    const present = new Set<number>();
    for (const figure of scene) {
      present.add(figure.id);
      this.#place(figure, own, scene);
    }
    for (const [id, body] of this.#bodies) {
      if (!present.has(id)) {
        body.destroy();
        this.#bodies.delete(id);
      }
    }
    this.#under(this.#ring, own);
    this.#under(this.#mark, target);
    this.#look(own ?? { x: 0, y: 0 });
  }

  /** The quality level; 0 is the finest. */
  get coarseness(): number {
    return this.#quality.level;
  }

  /** True if drawing is slow and its quality was reduced for that reason. */
  get isSlow(): boolean {
    return this.#quality.isSlow;
  }

  /** Converts a point in the window to a position on the ground. */
  groundAt(at: Spot): Spot {
    const { x, y } = this.#map.toLocal(at);
    return { x, y: -y };
  }

  /** Converts a position in the world to a point in the window. */
  screenOf({ x, y, z = 0 }: { x: number; y: number; z?: number }): Spot {
    const at = this.#map.toGlobal({ x, y: -y - z * RISE });
    return { x: at.x, y: at.y };
  }

  #look(at: Spot): void {
    const far = Math.hypot(at.x - this.#camera.x, at.y - this.#camera.y) > VIEW;
    const part = far ? 1 : FOLLOW;
    this.#camera = {
      x: this.#camera.x + (at.x - this.#camera.x) * part,
      y: this.#camera.y + (at.y - this.#camera.y) * part,
    };
    const { width, height } = this.#app.screen;
    const scale = Math.min(width, height) / VIEW;
    this.#map.scale.set(scale);
    this.#map.position.set(width / 2 - this.#camera.x * scale, height / 2 + this.#camera.y * scale);
  }

  #under(graphics: Graphics, figure: Figure | undefined): void {
    graphics.visible = figure !== undefined;
    if (figure !== undefined) {
      graphics.position.set(figure.x, -figure.y);
    }
  }

  #place(figure: Figure, own: Figure | undefined, scene: readonly Figure[]): void {
    let body = this.#bodies.get(figure.id);
    if (body === undefined) {
      body = new Body(figure, figure.kind === "player" && figure.owner === own?.owner, this.#layers);
      this.#bodies.set(figure.id, body);
    }
    // The object held by the own player moves with its prediction, not with the last snapshot.
    const at = own?.holding === figure.id ? { x: own.x, y: own.y, z: HOLD_HEIGHT } : figure;
    const held = figure.holding === undefined ? undefined : scene.find(({ id }) => id === figure.holding);
    body.place(figure, at, held, own);
  }
}
