/** The player's position: that of the pointer, or a circular movement without a pointer. */

import type { Place } from "./net.js";

/** Follows the pointer over an element. The returned function gives the current position of the player. */
export function steering(element: HTMLElement): () => Place {
  let pointer: Place | undefined;
  element.addEventListener("pointermove", ({ clientX, clientY }) => {
    const { left, top, width, height } = element.getBoundingClientRect();
    pointer = { x: (clientX - left) / width, y: (clientY - top) / height };
  });
  element.addEventListener("pointerleave", () => (pointer = undefined));
  return () => {
    const angle = performance.now() / 600;
    return pointer ?? { x: 0.5 + 0.3 * Math.cos(angle), y: 0.5 + 0.3 * Math.sin(angle) };
  };
}
