/** The example with a plain canvas. */

import { join } from "../net.js";
import type { Place } from "../net.js";
import { steering } from "../steering.js";

const SIZE = { width: 640, height: 400 };
const canvas = Object.assign(document.createElement("canvas"), SIZE);
document.querySelector("#stage")?.append(canvas);
const context = canvas.getContext("2d") as CanvasRenderingContext2D;

const where = steering(canvas);
let heard: Place | undefined;

function circle({ x, y }: Place, radius: number): void {
  context.beginPath();
  context.arc(x * SIZE.width, y * SIZE.height, radius, 0, 2 * Math.PI);
}

function draw(): void {
  context.fillStyle = "#1b2430";
  context.fillRect(0, 0, SIZE.width, SIZE.height);
  context.fillStyle = "#7fc4ff";
  circle(where(), 10);
  context.fill();
  if (heard !== undefined) {
    context.strokeStyle = "#ffc66d";
    context.lineWidth = 3;
    circle(heard, 18);
    context.stroke();
  }
  requestAnimationFrame(draw);
}

draw();
void join(where, (place) => (heard = place));
