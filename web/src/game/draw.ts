/** Draws the world with PixiJS, seen from above and a little from the south. */

import { Application, Container, Graphics, Text } from "pixi.js";

import * as figures from "./figures.js";
import { drawGround } from "./ground.js";
import type { Figure } from "./scene.js";

/** Tiles that fit into the shorter side of the window. */
const VIEW = 13;
/** How far something rises on the screen for each tile above the ground. */
const RISE = 0.8;
/** Part of the way to the player that the camera goes in a frame. */
const FOLLOW = 0.18;

export interface Spot {
  x: number;
  y: number;
}

/** What stands for one figure. */
interface Body {
  root: Container;
  /** Hearts of a player, progress of an object. */
  badge: Graphics;
  shown: string;
}

export class World {
  readonly #app: Application;
  readonly #map = new Container();
  readonly #figures = new Container({ sortableChildren: true });
  readonly #ring = new Graphics(figures.ring);
  readonly #mark = new Graphics(figures.mark);
  readonly #bodies = new Map<number, Body>();
  #camera: Spot = { x: 0, y: 0 };

  private constructor(app: Application) {
    this.#app = app;
    this.#map.addChild(drawGround(), this.#ring, this.#mark, this.#figures);
    this.#ring.visible = this.#mark.visible = false;
    app.stage.addChild(this.#map);
  }

  static async start(stage: HTMLElement): Promise<World> {
    const app = new Application();
    await app.init({ resizeTo: stage, background: 0x2f6f9f, antialias: true, autoDensity: true, resolution: Math.min(devicePixelRatio, 2) });
    stage.append(app.canvas);
    return new World(app);
  }

  /** Draws everything; `own` is the body of the player, `target` what is within reach. */
  draw(scene: readonly Figure[], own: Figure | undefined, target: Figure | undefined): void {
    const there = new Set<number>();
    for (const figure of scene) {
      there.add(figure.id);
      this.#place(figure, own);
    }
    for (const [id, body] of this.#bodies) {
      if (!there.has(id)) {
        body.root.destroy({ children: true });
        this.#bodies.delete(id);
      }
    }
    this.#under(this.#ring, own);
    this.#under(this.#mark, target);
    this.#look(own ?? { x: 0, y: 0 });
  }

  /** The point of the ground that is drawn at a point of the window. */
  groundAt(at: Spot): Spot {
    const { x, y } = this.#map.toLocal(at);
    return { x, y: -y };
  }

  /** Where in the window a point of the world is drawn. */
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

  #place(figure: Figure, own: Figure | undefined): void {
    let body = this.#bodies.get(figure.id);
    if (body === undefined) {
      body = make(figure, figure.owner !== 0 && figure.owner === own?.owner);
      this.#bodies.set(figure.id, body);
      this.#figures.addChild(body.root);
    }
    // What the player holds is where the player is drawn, not where the server saw it last.
    const held = own?.holding === figure.id ? own : undefined;
    const [x, y, z] = held === undefined ? [figure.x, figure.y, figure.z] : [held.x, held.y, 1.3125];
    body.root.position.set(x, -y - z * RISE);
    body.root.zIndex = -y + (z > 0 ? 0.01 : 0);
    show(body, figure);
  }
}

function make(figure: Figure, isOwn: boolean): Body {
  const root = new Container();
  const badge = new Graphics();
  if (figure.kind === "player") {
    root.addChild(new Graphics(figures.player(figure.owner)));
    const name = new Text({
      text: isOwn ? "You" : `P${figure.owner}`,
      style: { fontFamily: "system-ui, sans-serif", fontSize: 44, fontWeight: "700", fill: 0x12202e, stroke: { color: 0xffffff, width: 10, join: "round" } },
    });
    name.anchor.set(0.5, 1);
    name.scale.set(0.01);
    name.position.set(0, -1.62);
    root.addChild(name);
  } else {
    root.addChild(new Graphics(figure.kind === "tree" ? figures.tree : figures.mushroom));
  }
  root.addChild(badge);
  return { root, badge, shown: "" };
}

/** Hearts above players; above an object that is being broken, how much of it is left. */
function show(body: Body, figure: Figure): void {
  const isPlayer = figure.kind === "player";
  const part = figure.durability === undefined || figure.durability <= 0 ? 1 : Math.round(figure.durability * 20) / 20;
  const key = isPlayer ? `${figure.health}/${figure.mostHealth}` : `${part}`;
  if (body.shown === key) {
    return;
  }
  body.shown = key;
  body.badge.clear();
  if (isPlayer) {
    for (let index = 0; index < figure.mostHealth; index++) {
      const left = index < figure.health;
      body.badge.circle((index - (figure.mostHealth - 1) / 2) * 0.24, -1.5, 0.09);
      body.badge.fill(left ? 0xd21f3c : 0xb9c4ce).stroke({ color: 0xffffff, width: 0.04 });
    }
  } else if (part < 1) {
    body.badge.roundRect(-0.45, 0.12, 0.9, 0.16, 0.06).fill(0x12202e);
    body.badge.roundRect(-0.42, 0.15, 0.84 * (1 - part), 0.1, 0.04).fill(0xffd43b);
  }
}
