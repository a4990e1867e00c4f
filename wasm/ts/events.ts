/** Connection events and listeners, and the reporting of exceptions in application callbacks. */

import type { ConnectionEventMap } from "./types.js";

/** An event with additional properties. */
export class ConnectionEvent<K extends keyof ConnectionEventMap> extends Event {
  constructor(type: K, properties: Omit<ConnectionEventMap[K], keyof Event>) {
    super(type);
    Object.assign(this, properties);
  }
}

/** A function, or an object with the method `handleEvent`. */
export type Listener = ((event: any) => void) | { handleEvent(event: any): void };

/** The wrapper function of a listener, with its cleanup. */
interface Wrapper {
  call(event: Event): void;
  forget(): void;
}

/**
 * Counts the listeners of one event of an `EventTarget` by wrapping each listener, because an `EventTarget` does not
 * expose their number.
 */
export class ListenerSet {
  /** The listeners of the bubbling phase and of the capturing phase. The platform registers them separately. */
  readonly #wrappers = [new Map<Listener, Wrapper>(), new Map<Listener, Wrapper>()] as const;

  get isEmpty(): boolean {
    return this.#wrappers.every((wrappers) => wrappers.size === 0);
  }

  /** Returns the function to register for a listener, always the same one until the listener is removed. */
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

  /** Removes a listener and returns the function that was registered for it. */
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

/**
 * Wraps a listener so that its exceptions are reported without further effect. A listener always gets the same wrapper.
 */
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

/** Returns true if these options register a listener for the capturing phase. */
export function isCapturing(options: EventListenerOptions | boolean | undefined): boolean {
  return (typeof options === "object" ? options.capture : options) === true;
}

/** Returns true if the platform accepts a value as a listener. */
export function isListener(value: unknown): value is Listener {
  return typeof value === "function" || (typeof value === "object" && value !== null);
}

/** True if `reportError` terminates the process like an uncaught error, as in Deno. */
const isFatal = "Deno" in globalThis;

/**
 * Reports an exception of an application callback and continues. In a page it is reported like an exception of an event
 * listener. Elsewhere it is only logged, because an error in one message must not stop a server for all its clients.
 */
export function report(error: unknown): void {
  if (typeof reportError === "function" && !isFatal) {
    reportError(error);
  } else {
    console.error("rakwire: a callback of the application threw an error", error);
  }
}

/** Calls an application function, and reports its exception or rejection. */
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
