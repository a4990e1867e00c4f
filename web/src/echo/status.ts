/** The connection state of the page, for its text, its styles and assistive technology. */

import { element } from "../dom.js";

export type State = "empty" | "connecting" | "connected" | "failed" | "closed";

/** The state of the page. Dispatches a `change` event whenever it changes. */
export class Status extends EventTarget {
  readonly #text = element("status", HTMLParagraphElement);
  readonly #connect = element("connect", HTMLButtonElement);
  readonly #disconnect = element("disconnect", HTMLButtonElement);
  #state: State = "empty";

  get state(): State {
    return this.#state;
  }

  set(state: State, text: string): void {
    this.#state = state;
    document.body.dataset["state"] = state;
    this.#text.textContent = text;
    const isBusy = state === "connecting" || state === "connected";
    const hadFocus = document.activeElement;
    this.#connect.disabled = isBusy;
    this.#disconnect.disabled = !isBusy;
    this.#disconnect.textContent = state === "connecting" ? "Cancel" : "Disconnect";
    // Move the focus from a button that becomes disabled, so that the keyboard keeps working.
    if (hadFocus === this.#connect && isBusy) {
      this.#disconnect.focus();
    } else if (hadFocus === this.#disconnect && !isBusy) {
      this.#connect.focus();
    }
    this.dispatchEvent(new Event("change"));
  }
}
