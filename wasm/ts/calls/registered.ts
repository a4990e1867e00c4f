/** What another peer may call, and what does the work then. */

import { report } from "../plugin/report.js";
import type { Connection } from "../types.js";
import { FunctionError } from "./failures.js";
import { trailerOf, withoutTrailer } from "./fingerprint.js";
import type { Encoding, FunctionSchema, ValueSchema } from "./schema.js";
import { encodingOf } from "./schema.js";
import { REASONS } from "./wire.js";

/** What a handler knows of who calls. */
export interface Caller {
  readonly connection: Connection;
  /** Is aborted when the connection has ended, so that nobody waits for the answer. */
  readonly signal: AbortSignal;
}

/** What does the work when a function is called or a signal is given. */
export interface Handler<T, R> {
  /** Whether the peer may call this. It is asked before the arguments are looked at. */
  isAllowed(caller: Caller): boolean;
  /**
   * Does what was asked for. A {@link FunctionError} tells the caller why it failed; other errors are reported here, and are the
   * failure 0 there.
   */
  handle(value: T, caller: Caller): R | Promise<R>;
}

/** Why a call is refused. */
export class Refusal {
  readonly reason: number;
  readonly code: number;

  constructor(reason: number, code = 0) {
    this.reason = reason;
    this.code = code;
  }
}

/** A handler behind the bytes of its arguments and answer. */
export class Registered {
  readonly order: number;
  readonly name: string;
  /** What callers with fingerprints have behind their arguments. */
  readonly #trailer: Uint8Array | undefined;
  readonly #handler: Handler<unknown, unknown>;
  readonly #arguments: Encoding<unknown>;
  readonly #answer: Encoding<unknown> | undefined;

  /** A function, or without an answer the handler of a signal. */
  constructor(name: string, schema: Pick<FunctionSchema, "arguments"> & { answer?: ValueSchema }, handler: Handler<any, any>, order = 0) {
    this.order = order;
    this.name = name;
    this.#trailer = trailerOf(name, schema.arguments, schema.answer);
    this.#handler = handler;
    this.#arguments = encodingOf(schema.arguments);
    this.#answer = schema.answer && encodingOf(schema.answer);
  }

  /** Lets the handler do its work, and gives the bytes of the answer, none for a signal; at once if the handler does. */
  run(payload: Uint8Array, caller: Caller, done: (result: Uint8Array | Refusal) => void): void {
    const result = this.#begin(payload, caller);
    if (isPromise(result)) {
      void result.then((answer) => this.#pack(answer), failed).then(done, report);
    } else {
      done(result instanceof Refusal ? result : this.#pack(result));
    }
  }

  #begin(payload: Uint8Array, caller: Caller): unknown {
    if (!this.#isAllowed(caller)) {
      return new Refusal(REASONS.forbidden);
    }
    const bytes = this.#trailer === undefined ? payload : withoutTrailer(this.name, this.#trailer, payload);
    if (bytes === undefined) {
      return new Refusal(REASONS.otherSchema);
    }
    let value: unknown;
    try {
      value = this.#arguments.unpack(bytes);
    } catch {
      return new Refusal(REASONS.badArguments);
    }
    try {
      return this.#handler.handle(value, caller);
    } catch (error) {
      return failed(error);
    }
  }

  #isAllowed(caller: Caller): boolean {
    try {
      return this.#handler.isAllowed(caller) === true;
    } catch (error) {
      report(error);
      return false;
    }
  }

  #pack(answer: unknown): Uint8Array | Refusal {
    try {
      return this.#answer?.pack(answer) ?? new Uint8Array(0);
    } catch (error) {
      report(error);
      return new Refusal(REASONS.answerTooLong);
    }
  }
}

function isPromise(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as Partial<PromiseLike<unknown>> | null | undefined)?.then === "function";
}

/** What the caller learns of what a handler has thrown. */
function failed(error: unknown): Refusal {
  if (error instanceof FunctionError) {
    return new Refusal(REASONS.failed, error.failure);
  }
  report(error);
  return new Refusal(REASONS.failed);
}
