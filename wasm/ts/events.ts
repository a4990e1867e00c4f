/** The events that a connection dispatches, their listeners, and what becomes of what a function of the application throws. */

import type { ConnectionEventMap } from "./types.js";

/** An event with what it tells besides. */
export class ConnectionEvent<K extends keyof ConnectionEventMap> extends Event {
  constructor(type: K, told: Omit<ConnectionEventMap[K], keyof Event>) {
    super(type);
    Object.assign(this, told);
  }
}

/** A function, or an object with the method `handleEvent`. */
export type Listener = ((event: any) => void) | { handleEvent(event: any): void };

/** The function that stands for a listener, and what is to happen when that goes. */
interface Wrapper {
  call(event: Event): void;
  forget(): void;
}

/**
 * The listeners of one event of an `EventTarget`, each behind a function that notes when it goes: an `EventTarget` does not tell how many
 * there are.
 */
export class ListenerSet {
  /** Those for the bubbling phase and those for the capturing phase, which the platform keeps apart. */
  readonly #wrappers = [new Map<Listener, Wrapper>(), new Map<Listener, Wrapper>()] as const;

  get isEmpty(): boolean {
    return this.#wrappers.every((wrappers) => wrappers.size === 0);
  }

  /** The function to register for a listener: always the same one until the listener goes. */
  add(listener: Listener, options: AddEventListenerOptions | boolean | undefined): (event: Event) => void {
    const wrappers = this.#of(options);
    const known = wrappers.get(listener);
    if (known !== undefined) {
      return known.call;
    }
    const { once = false, signal } = typeof options === "object" ? options : {};
    const forget = (): void => {
      if (wrappers.get(listener) === wrapper) {
        wrappers.delete(listener);
      }
      signal?.removeEventListener("abort", forget);
    };
    const call = (event: Event): void => {
      if (once) {
        forget();
      }
      guardedListener(listener)(event);
    };
    const wrapper = { call, forget };
    if (signal?.aborted !== true) {
      wrappers.set(listener, wrapper);
      signal?.addEventListener("abort", forget);
    }
    return call;
  }

  /** The function that was registered for a listener, which goes. */
  remove(listener: Listener, options: EventListenerOptions | boolean | undefined): ((event: Event) => void) | undefined {
    const wrapper = this.#of(options).get(listener);
    wrapper?.forget();
    return wrapper?.call;
  }

  #of(options: EventListenerOptions | boolean | undefined) {
    return this.#wrappers[isCapturing(options) ? 1 : 0];
  }
}

const guards = /* @__PURE__ */ new WeakMap<Listener, (event: Event) => void>();

/** The function that stands for a listener, always the same one: what the listener throws is reported, and nothing ends by it. */
export function guardedListener(listener: Listener): (event: Event) => void {
  let guard = guards.get(listener);
  if (guard === undefined) {
    const call = (event: Event): unknown =>
      typeof listener === "function" ? listener.call(event.currentTarget, event) : listener.handleEvent(event);
    guard = (event) => guarded(call, event);
    guards.set(listener, guard);
  }
  return guard;
}

/** Whether these options are those of a listener for the capturing phase. */
export function isCapturing(options: EventListenerOptions | boolean | undefined): boolean {
  return (typeof options === "object" ? options.capture : options) === true;
}

/** Whether a value can be a listener; the platform refuses or ignores the others. */
export function isListener(value: unknown): value is Listener {
  return typeof value === "function" || (typeof value === "object" && value !== null);
}

/** Whether `reportError` ends the process, as an error that nothing has caught: in Deno it does. */
const isFatal = "Deno" in globalThis;

/**
 * Tells of an error of an application's function, and goes on: in a page as of one of a listener. What one message causes in a
 * server is not to end it for all others, so that other runtimes tell of it on the console alone.
 */
export function report(error: unknown): void {
  if (typeof reportError === "function" && !isFatal) {
    reportError(error);
  } else {
    console.error("rakwire: a function of the application has thrown", error);
  }
}

/** Calls a function of the application, and reports what it throws, or what the promise rejects with that it returns. */
export function guarded<A extends unknown[]>(call: (...given: A) => unknown, ...given: A): void {
  try {
    const result = call(...given);
    if (result instanceof Promise) {
      result.catch(report);
    }
  } catch (error) {
    report(error);
  }
}
