/** The example with Phaser. */

import * as Phaser from "phaser";

import { join } from "../net.js";
import type { Place } from "../net.js";
import { steering } from "../steering.js";

const SIZE = { width: 640, height: 400 };
type Mark = Phaser.GameObjects.Arc;

class Stage extends Phaser.Scene {
  #player: Mark | undefined;
  #where: (() => Place) | undefined;

  create(): void {
    this.#player = this.add.circle(0, 0, 10, 0x7fc4ff);
    const echo = this.add.circle(0, 0, 18).setStrokeStyle(3, 0xffc66d).setVisible(false);
    const where = steering(this.game.canvas);
    this.#where = where;
    void join(where, (place) => move(echo.setVisible(true), place));
  }

  override update(): void {
    if (this.#player !== undefined && this.#where !== undefined) {
      move(this.#player, this.#where());
    }
  }
}

function move(mark: Mark, { x, y }: Place): void {
  mark.setPosition(x * SIZE.width, y * SIZE.height);
}

new Phaser.Game({
  ...SIZE,
  type: Phaser.AUTO,
  parent: "stage",
  backgroundColor: "#1b2430",
  banner: false,
  audio: { noAudio: true },
  scene: Stage,
});
