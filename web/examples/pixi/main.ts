/** The example with PixiJS. */

import { Application, Graphics } from "pixi.js";

import { join } from "../net.js";
import type { Place } from "../net.js";
import { steering } from "../steering.js";

const SIZE = { width: 640, height: 400 };
const app = new Application();
await app.init({ ...SIZE, background: "#1b2430", antialias: true });
document.querySelector("#stage")?.append(app.canvas);

const player = new Graphics().circle(0, 0, 10).fill("#7fc4ff");
const echo = new Graphics().circle(0, 0, 18).stroke({ color: "#ffc66d", width: 3 });
echo.visible = false;
app.stage.addChild(player, echo);

const move = (mark: Graphics, { x, y }: Place): void => void mark.position.set(x * SIZE.width, y * SIZE.height);
const where = steering(app.canvas);
app.ticker.add(() => move(player, where()));
void join(where, (place) => {
  echo.visible = true;
  move(echo, place);
});
