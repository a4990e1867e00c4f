/** Which state the page is in, for people, styles and assistive technology. */

import { element } from "../dom.js";

export type State = "empty" | "connecting" | "connected" | "failed" | "closed";

/** Dispatches `change`. */
export class Status extends EventTarget {
  readonly #words = element("status", HTMLParagraphElement);
  readonly #connect = element("connect", HTMLButtonElement);
  readonly #disconnect = element("disconnect", HTMLButtonElement);
  #state: State = "empty";

  get state(): State {
    return this.#state;
  }

  set(state: State, words: string): void {
    this.#state = state;
    document.body.dataset["state"] = state;
    this.#words.textContent = words;
    const isBusy = state === "connecting" || state === "connected";
    const hadFocus = document.activeElement;
    this.#connect.disabled = isBusy;
    this.#disconnect.disabled = !isBusy;
    this.#disconnect.textContent = state === "connecting" ? "Cancel" : "Disconnect";
    // A button that goes grey under the finger must not leave the keyboard nowhere.
    if (hadFocus === this.#connect && isBusy) {
      this.#disconnect.focus();
    } else if (hadFocus === this.#disconnect && !isBusy) {
      this.#connect.focus();
    }
    this.dispatchEvent(new Event("change"));
  }
}
