/** Keyboard, mouse and touch input. */

import { element } from "../dom.js";

const NORTH = 1;
const WEST = 2;
const SOUTH = 4;
const EAST = 8;

const DIRECTIONS: ReadonlyMap<string, number> = new Map([
  ["KeyW", NORTH], ["ArrowUp", NORTH],
  ["KeyA", WEST], ["ArrowLeft", WEST],
  ["KeyS", SOUTH], ["ArrowDown", SOUTH],
  ["KeyD", EAST], ["ArrowRight", EAST],
]);
const BREAK = new Set(["Space", "KeyE"]);
/** The fraction of the stick's radius within which a drag has no direction. */
const DEAD_ZONE = 0.3;
/** The fraction of a drag's length that its component along an axis must have to count as that direction. */
const DIAGONAL = 0.4;

export interface Press {
  x: number;
  y: number;
}

export class Controls {
  readonly #held = new Set<string>();
  readonly #stick = element("stick", HTMLDivElement);
  readonly #knob = element("knob", HTMLDivElement);
  #dragged = 0;
  #isGrabbing = false;
  #press: Press | undefined;

  constructor(stage: HTMLElement) {
    addEventListener("keydown", (event) => this.#onKey(event, true));
    addEventListener("keyup", (event) => this.#onKey(event, false));
    addEventListener("blur", () => this.release());
    stage.addEventListener("pointerdown", (event) => {
      const { left, top } = stage.getBoundingClientRect();
      this.#press = { x: event.clientX - left, y: event.clientY - top };
    });
    this.#watchStick();
    this.#watchGrab();
  }

  /** Returns the pressed directions as bits, encoded as in the game's messages. */
  get movement(): number {
    let movement = this.#dragged;
    for (const code of this.#held) {
      movement |= DIRECTIONS.get(code) ?? 0;
    }
    return movement;
  }

  get isBreaking(): boolean {
    return this.#isGrabbing || [...BREAK].some((code) => this.#held.has(code));
  }

  /** Returns the last press since the previous call; `undefined` if there was none. */
  takePress(): Press | undefined {
    const press = this.#press;
    this.#press = undefined;
    return press;
  }

  /** Releases all keys and touches. */
  release(): void {
    this.#held.clear();
    this.#dragged = 0;
    this.#isGrabbing = false;
    this.#press = undefined;
    this.#knob.style.transform = "";
  }

  #onKey(event: KeyboardEvent, isDown: boolean): void {
    if (document.body.dataset["state"] !== "playing" || !(DIRECTIONS.has(event.code) || BREAK.has(event.code))) {
      return;
    }
    event.preventDefault();
    if (isDown) {
      this.#held.add(event.code);
    } else {
      this.#held.delete(event.code);
    }
  }

  #watchStick(): void {
    const stick = this.#stick;
    stick.addEventListener("pointerdown", (event) => {
      stick.setPointerCapture(event.pointerId);
      this.#drag(event);
    });
    stick.addEventListener("pointermove", (event) => {
      if (stick.hasPointerCapture(event.pointerId)) {
        this.#drag(event);
      }
    });
    for (const end of ["pointerup", "pointercancel"] as const) {
      stick.addEventListener(end, () => {
        this.#dragged = 0;
        this.#knob.style.transform = "";
      });
    }
  }

  #drag(event: PointerEvent): void {
    const { left, top, width, height } = this.#stick.getBoundingClientRect();
    const x = ((event.clientX - left) / width) * 2 - 1;
    const y = 1 - ((event.clientY - top) / height) * 2;
    const length = Math.hypot(x, y);
    const part = Math.min(1, 1 / Math.max(length, 0.001));
    this.#knob.style.transform = `translate(${x * part * 60}%, ${-y * part * 60}%)`;
    this.#dragged = 0;
    if (length > DEAD_ZONE) {
      this.#dragged |= x / length > DIAGONAL ? EAST : x / length < -DIAGONAL ? WEST : 0;
      this.#dragged |= y / length > DIAGONAL ? NORTH : y / length < -DIAGONAL ? SOUTH : 0;
    }
  }

  #watchGrab(): void {
    const grab = element("grab", HTMLButtonElement);
    grab.addEventListener("pointerdown", () => (this.#isGrabbing = true));
    for (const end of ["pointerup", "pointercancel", "pointerleave"] as const) {
      grab.addEventListener(end, () => (this.#isGrabbing = false));
    }
    grab.addEventListener("contextmenu", (event) => event.preventDefault());
  }
}
