/** Draws a figure: its shadow, its body and its label. */

import { Container, Graphics, Text } from "pixi.js";

import * as figures from "./figures.js";
import { hearts } from "./scene.js";
import type { Figure } from "./scene.js";

/** The vertical offset on the screen per tile of height. */
export const RISE = 0.8;
/** The additional height of a label above a held object, in units. */
const LIFT: Readonly<Record<"tree" | "mushroom", number>> = { tree: 155, mushroom: 15 };

/** The distance in tiles from the player of this page within which labels of other players are faint. */
const OVERLAP = { x: 1.2, y: 0.8 } as const;
const FAINT = 0.25;

/** The layers of the map, from the bottom. */
export interface Layers {
  shadows: Container;
  bodies: Container;
  labels: Container;
}

export class Body {
  readonly #shadow: Graphics;
  readonly #body: Graphics;
  readonly #label = new Container();
  readonly #badge = new Graphics();
  #shown = "";

  constructor(figure: Figure, isOwn: boolean, layers: Layers) {
    this.#shadow = new Graphics(figures.shadows[figure.kind]);
    this.#body = new Graphics(figure.kind === "player" ? figures.player(figure.owner) : figures[figure.kind]);
    for (const part of [this.#shadow, this.#body, this.#label]) {
      part.scale.set(1 / figures.UNITS);
    }
    this.#label.addChild(this.#badge);
    if (figure.kind === "player") {
      this.#label.addChild(nameOf(figure, isOwn));
    }
    layers.shadows.addChild(this.#shadow);
    layers.bodies.addChild(this.#body);
    layers.labels.addChild(this.#label);
  }

  /**
   * Draws the figure at a position. `held` is the object that it holds. `own` is the player of this page, and its label
   * is never faint.
   */
  place(figure: Figure, { x, y, z }: { x: number; y: number; z: number }, held: Figure | undefined, own: Figure | undefined): void {
    this.#shadow.position.set(x, -y);
    this.#body.position.set(x, -y - z * RISE);
    this.#body.zIndex = -y + (z > 0 ? 0.01 : 0);
    const lift = held === undefined || held.kind === "player" ? 0 : LIFT[held.kind];
    this.#label.position.set(x, -y - z * RISE - lift / figures.UNITS);
    const overlaps = own !== undefined && own.id !== figure.id && Math.abs(own.x - x) < OVERLAP.x && Math.abs(own.y - y) < OVERLAP.y;
    this.#label.alpha = overlaps ? FAINT : 1;
    this.#show(figure);
  }

  destroy(): void {
    this.#shadow.destroy();
    this.#body.destroy();
    this.#label.destroy({ children: true });
  }

  /** Draws hearts above players, and a progress bar below an object that is being broken. */
  #show(figure: Figure): void {
    const whole = figure.durability === undefined || figure.durability <= 0;
    const part = whole ? 1 : Math.round((figure.durability ?? 1) * 20) / 20;
    const key = figure.kind === "player" ? `${figure.health}/${figure.maxHealth}` : `${part}`;
    if (this.#shown === key) {
      return;
    }
    this.#shown = key;
    this.#badge.clear();
    if (figure.kind === "player") {
      const { full, most } = hearts(figure);
      for (let index = 0; index < most; index++) {
        this.#badge.circle((index - (most - 1) / 2) * 26, -152, 10);
        this.#badge.fill(index < full ? 0xd21f3c : 0xffffff).stroke({ color: 0x12202e, width: 3 });
      }
    } else if (part < 1) {
      this.#badge.roundRect(-47, 12, 94, 18, 7).fill(0x12202e);
      this.#badge.roundRect(-43, 16, 86 * (1 - part), 10, 4).fill(0xffd43b);
    }
  }
}

function nameOf(figure: Figure, isOwn: boolean): Text {
  const name = new Text({
    text: isOwn ? "You" : `P${figure.owner}`,
    style: {
      fontFamily: "system-ui, sans-serif",
      fontSize: 38,
      fontWeight: "700",
      fill: 0x12202e,
      stroke: { color: 0xffffff, width: 9, join: "round" },
    },
  });
  name.anchor.set(0.5, 1);
  name.position.set(0, -162);
  return name;
}
