/** The example with three.js. */

import { BoxGeometry, Color, DirectionalLight, HemisphereLight, Mesh, MeshStandardMaterial, PerspectiveCamera, PlaneGeometry, Scene, TorusGeometry, WebGLRenderer } from "three";

import { join } from "../net.js";
import type { Place } from "../net.js";
import { steering } from "../steering.js";

const SIZE = { width: 640, height: 400 };
/** The size of the ground in units of the scene. */
const GROUND = { width: 8, depth: 5 };

const renderer = new WebGLRenderer({ antialias: true });
renderer.setSize(SIZE.width, SIZE.height);
document.querySelector("#stage")?.append(renderer.domElement);

const scene = new Scene();
scene.background = new Color("#1b2430");
const camera = new PerspectiveCamera(45, SIZE.width / SIZE.height, 0.1, 100);
camera.position.set(0, 5.5, 6);
camera.lookAt(0, 0, 0);
const sun = new DirectionalLight("white", 2);
sun.position.set(3, 6, 2);
scene.add(sun, new HemisphereLight("#bcd7ff", "#223", 1.2));

const solid = (color: string): MeshStandardMaterial => new MeshStandardMaterial({ color });
const ground = new Mesh(new PlaneGeometry(GROUND.width, GROUND.depth), solid("#2c3a4c"));
ground.rotation.x = -Math.PI / 2;
const player = new Mesh(new BoxGeometry(0.5, 0.5, 0.5), solid("#7fc4ff"));
const echo = new Mesh(new TorusGeometry(0.5, 0.06, 12, 48), solid("#ffc66d"));
echo.rotation.x = Math.PI / 2;
echo.visible = false;
scene.add(ground, player, echo);

function move(mark: Mesh, { x, y }: Place): void {
  mark.position.set((x - 0.5) * GROUND.width, 0.25, (y - 0.5) * GROUND.depth);
}

const where = steering(renderer.domElement);
renderer.setAnimationLoop(() => {
  move(player, where());
  renderer.render(scene, camera);
});
void join(where, (place) => {
  echo.visible = true;
  move(echo, place);
});
