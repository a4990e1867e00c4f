/**
 * Remote calls between two peers. A function is called by name and returns an answer. A signal has any number of
 * handlers and no answer.
 */

import type {
  Answer,
  Arguments,
  Caller,
  CallMessage,
  CallSchema,
  FunctionName,
  FunctionSchema,
  Handler,
  SignalName,
  SignalValue,
  ValueSchema,
} from "./calls/schema.js";
import {
  CALLS_ID,
  decodeCall,
  encodeCall,
  encodingOf,
  readNames,
  REASONS,
  Refusal,
  refusalError,
  Registered,
  trailerOf,
} from "./calls/schema.js";
import { notConnected, RakwireError } from "./errors.js";
import { report } from "./events.js";
import { checkNames, readInteger, RECEIPT_OPTIONS, SEND_OPTIONS } from "./options.js";
import type { WaitingMessage } from "./plugin/connection.js";
import { attachUntilEnd, SendQueue } from "./plugin/connection.js";
import type { Connection, Message, SendOptions } from "./types.js";
import { MAX_TIMEOUT_MS } from "./types.js";
import type { Deferred, WaitOptions } from "./waits.js";
import { beforeAbort, deferred } from "./waits.js";

export { bitStream, FunctionError } from "./calls/schema.js";
export type {
  Answer,
  Arguments,
  Caller,
  CallSchema,
  Encoding,
  FunctionName,
  FunctionSchema,
  FunctionsOf,
  Handler,
  SignalName,
  SignalsOf,
  SignalValue,
  ValueOf,
  ValueSchema,
} from "./calls/schema.js";
export { RakwireError } from "./errors.js";
export type { ErrorCode, RakwireErrorOptions } from "./errors.js";

const TIMEOUT_MS = 10_000;
const DEFAULT_MAX_CALLS = 64;
const DEFAULT_MAX_BYTES = 4_096;
/** The bounds of `maxBytes`: more than a message header, less than the longest RakNet message. */
const MIN_BYTES = 128;
const MAX_BYTES = 4 * 1024 * 1024;
const MAX_CALLS = 65_536;

/** The limits of remote calls. */
export interface CallLimits {
  /** The maximum number of calls in progress in each direction, and of messages queued for sending. Default: 64. */
  maxCalls?: number;
  /** The maximum message size in bytes, in both directions. Default: 4,096. */
  maxBytes?: number;
}

/** Options of a call. The peer sends the answer with the same delivery as the call. */
export interface CallOptions extends SendOptions, WaitOptions {
  /** The timeout for the answer in milliseconds. Default: 10,000. */
  timeoutMs?: number;
}

/** Counters of remote calls. */
export interface CallStats {
  /** Calls that the peer made to functions registered on this side. */
  readonly calls: number;
  /** Signals received from the peer. */
  readonly signals: number;
  /** Calls that were refused for any reason, and signals that were forbidden, invalid or failed. */
  readonly refused: number;
  /** Calls and signals of the peer that were dropped because `maxCalls` calls were already in progress. */
  readonly busy: number;
  /** Messages that could not be decoded or were too long. */
  readonly malformed: number;
  /** Answers that arrived too late or match no call. */
  readonly unexpected: number;
  /** Calls and signals that were not run because the peer has different argument or answer types. */
  readonly mismatched: number;
}

/**
 * Calls functions and sends signals of a schema over a connection. Each peer creates an instance, and can call only the
 * functions registered at the remote peer.
 *
 * ```ts
 * const shop = { functions: { "shop.buy": { arguments: rabbit.tuple(rabbit.u16, rabbit.u8), answer: rabbit.u32 } } };
 * const calls = new RemoteCalls(connection, shop);
 * const coins = await calls.call("shop.buy", [7, 2], { timeoutMs: 2_000 });
 * ```
 */
export class RemoteCalls<S extends CallSchema> {
  /**
   * Called when the peer has different argument or answer types, because it runs another version of the game. `name` is
   * the function or signal that the peer used. If the peer refused a call of this side, `name` is `undefined` and the
   * call rejects with `schema-mismatch`.
   */
  onMismatch: ((name: string | undefined) => void) | undefined;
  readonly #functions: ReadonlyMap<string, FunctionSchema>;
  readonly #signals: ReadonlyMap<string, ValueSchema>;
  readonly #maxCalls: number;
  readonly #maxBytes: number;
  readonly #registered = new Map<string, Registered>();
  readonly #handlers = new Map<string, Registered[]>();
  readonly #open = new Map<number, Deferred<Uint8Array>>();
  readonly #outgoing: SendQueue;
  readonly #answers: SendQueue;
  /** Queued refusals, which do not count towards `maxCalls`. */
  readonly #refusals: SendQueue;
  readonly #ended = new AbortController();
  readonly #caller: Caller;
  readonly #detach: () => void;
  #running = 0;
  #nextNumber = 0;
  readonly #stats = { calls: 0, signals: 0, refused: 0, busy: 0, malformed: 0, unexpected: 0, mismatched: 0 };

  /** @throws RakwireError with the code `bad-option`. */
  constructor(connection: Connection, schema: S, limits: CallLimits = {}) {
    const { maxCalls = DEFAULT_MAX_CALLS, maxBytes = DEFAULT_MAX_BYTES } = limits;
    checkNames(limits, ["maxCalls", "maxBytes"]);
    this.#functions = readNames(schema.functions);
    this.#signals = readNames(schema.signals);
    this.#maxCalls = readInteger("maxCalls", maxCalls, 1, MAX_CALLS);
    this.#maxBytes = readInteger("maxBytes", maxBytes, MIN_BYTES, MAX_BYTES);
    this.#outgoing = new SendQueue(connection);
    this.#answers = new SendQueue(connection);
    this.#refusals = new SendQueue(connection);
    this.#caller = { connection, signal: this.#ended.signal };
    const plugin = { ids: [CALLS_ID], onMessage: (message: Message) => this.#onMessage(message) };
    this.#detach = attachUntilEnd(connection, plugin, () => this.detach());
  }

  /**
   * Calls a function of the peer and resolves with its answer.
   *
   * @throws RakwireError if there is no answer: `timeout`, `not-connected`, `too-many-calls`, `too-long`,
   * `unknown-function`, `forbidden`, `bad-arguments`, `answer-too-long`, `schema-mismatch`, `bad-answer`, `refused`;
   * {@link FunctionError} with the code that the function chose; or the reason of the signal. If the call is still
   * queued when the signal is aborted, it is never sent.
   */
  async call<N extends FunctionName<S>>(name: N, value: Arguments<S, N>, options: CallOptions = {}): Promise<Answer<S, N>> {
    const { timeoutMs = TIMEOUT_MS, signal, ...delivery } = options;
    checkNames(options, [...RECEIPT_OPTIONS, "timeoutMs"]);
    readInteger("timeoutMs", timeoutMs, 0, MAX_TIMEOUT_MS);
    signal?.throwIfAborted();
    const schema = known(this.#functions, name);
    this.#checkRoom(this.#open.size);
    const number = this.#nextNumber;
    const bytes = this.#encode({ kind: "call", number, name, payload: packed(name, schema.arguments, value, schema.answer) });
    this.#nextNumber = (number + 1) >>> 0;
    const answer = deferred<Uint8Array>();
    const message: WaitingMessage = { bytes, options: delivery, onFailed: answer.reject };
    const timer = setTimeout(() => answer.reject(new RakwireError("timeout", `no answer within ${timeoutMs} ms; a slow function needs a longer timeoutMs`)), timeoutMs);
    this.#open.set(number, answer);
    try {
      this.#outgoing.push(message);
      return read(schema.answer, await beforeAbort(signal, answer.promise)) as Answer<S, N>;
    } finally {
      clearTimeout(timer);
      this.#open.delete(number);
      this.#outgoing.remove(message);
    }
  }

  /**
   * Sends a signal to the peer. Signals have no answer.
   *
   * @throws RakwireError with the code `too-many-calls`, `too-long`, `bad-option` or `not-connected`.
   */
  signal<N extends SignalName<S>>(name: N, value: SignalValue<S, N>, delivery: SendOptions = {}): void {
    checkNames(delivery, SEND_OPTIONS);
    const schema = known(this.#signals, name);
    this.#checkRoom(this.#outgoing.length);
    const bytes = this.#encode({ kind: "signal", name, payload: packed(name, schema, value) });
    this.#outgoing.push({ bytes, options: delivery, onFailed: () => undefined });
  }

  /**
   * Registers a function that the peer can call. Returns a function that unregisters it.
   *
   * @throws RakwireError with the code `bad-option` if the name is already registered.
   */
  register<N extends FunctionName<S>>(name: N, handler: Handler<Arguments<S, N>, Answer<S, N>>): () => void {
    const registered = new Registered(name, known(this.#functions, name), handler);
    if (this.#registered.has(name)) {
      throw new RakwireError("bad-option", `the function ${name} already has a handler`);
    }
    this.#registered.set(name, registered);
    return () => {
      if (this.#registered.get(name) === registered) {
        this.#registered.delete(name);
      }
    };
  }

  /**
   * Connects a handler to a signal. Returns a function that disconnects it. Handlers run in descending `order`.
   * Handlers of equal `order` run in the order in which they were connected.
   */
  connect<N extends SignalName<S>>(name: N, handler: Handler<SignalValue<S, N>, void>, order = 0): () => void {
    const registered = new Registered(name, { arguments: known(this.#signals, name) }, handler, order);
    const all = [...(this.#handlers.get(name) ?? []), registered].sort((a, b) => b.order - a.order);
    this.#handlers.set(name, all);
    return () => this.#handlers.set(name, (this.#handlers.get(name) ?? []).filter((other) => other !== registered));
  }

  /** The number of calls in progress from this side. */
  get openCalls(): number {
    return this.#open.size;
  }

  stats(): CallStats {
    return { ...this.#stats };
  }

  /**
   * Rejects all pending calls with `not-connected` and stops handling calls of the peer. The same happens when the
   * connection closes.
   */
  detach(): void {
    this.#detach();
    this.#ended.abort(notConnected());
    this.#outgoing.clear();
    this.#answers.clear();
    this.#refusals.clear();
    this.#open.forEach((answer) => answer.reject(notConnected()));
  }

  #checkRoom(count: number): void {
    this.#ended.signal.throwIfAborted();
    if (count >= this.#maxCalls) {
      throw new RakwireError("too-many-calls", `${this.#maxCalls} calls are in progress; wait for some of them, or raise maxCalls`);
    }
  }

  #encode(message: CallMessage): Uint8Array {
    const bytes = encodeCall(message);
    if (bytes.length > this.#maxBytes) {
      throw new RakwireError("too-long", `the message has ${bytes.length} bytes, more than the ${this.#maxBytes} of maxBytes; raise it at both peers`);
    }
    return bytes;
  }

  #onMessage({ bytes, reliability, channel }: Message): void {
    const message = bytes.length <= this.#maxBytes ? decodeCall(bytes) : undefined;
    switch (message?.kind) {
      case "call":
        return this.#onCall(message.number, message.name, message.payload, { reliability, channel });
      case "signal":
        return this.#onSignal(message.name, message.payload);
      case "answer":
        return this.#take(message.number)?.resolve(message.payload);
      case "refusal":
        return this.#onRefusal(message.number, message.reason, message.code);
      default:
        this.#stats.malformed += 1;
    }
  }

  #onRefusal(number: number, reason: number, code: number): void {
    const answer = this.#take(number);
    answer?.reject(refusalError(reason, code));
    if (answer !== undefined && reason === REASONS.otherSchema) {
      this.#mismatched(undefined);
    }
  }

  #mismatched(name: string | undefined): void {
    this.#stats.mismatched += 1;
    try {
      this.onMismatch?.(name);
    } catch (error) {
      report(error);
    }
  }

  /** Removes and returns the pending answer of the call with this number. */
  #take(number: number): Deferred<Uint8Array> | undefined {
    const answer = this.#open.get(number);
    this.#stats.unexpected += answer === undefined ? 1 : 0;
    this.#open.delete(number);
    return answer;
  }

  #onCall(number: number, name: string, payload: Uint8Array, delivery: SendOptions): void {
    if (this.#running + this.#answers.length >= this.#maxCalls) {
      this.#stats.busy += 1;
      // Refusals are short, so limiting their number to `maxCalls` bounds their memory under a flood of calls.
      if (this.#refusals.length < this.#maxCalls) {
        const bytes = this.#encodeReply(number, new Refusal(REASONS.busy));
        this.#refusals.push({ bytes, options: delivery, onFailed: () => undefined });
      }
      return;
    }
    const registered = this.#registered.get(name);
    this.#stats.calls += registered === undefined ? 0 : 1;
    this.#run(registered, payload, (result) => {
      const reply = this.#encodeReply(number, result);
      this.#answers.push({ bytes: reply, options: delivery, onFailed: () => undefined });
    });
  }

  #encodeReply(number: number, result: Uint8Array | Refusal): Uint8Array {
    const refusal = ({ reason, code }: Refusal): CallMessage => ({ kind: "refusal", number, reason, code });
    if (result instanceof Refusal) {
      return encodeCall(refusal(result));
    }
    const answer = encodeCall({ kind: "answer", number, payload: result });
    if (answer.length <= this.#maxBytes) {
      return answer;
    }
    this.#stats.refused += 1;
    return encodeCall(refusal(new Refusal(REASONS.answerTooLong)));
  }

  #onSignal(name: string, payload: Uint8Array): void {
    this.#stats.signals += 1;
    for (const handler of this.#handlers.get(name) ?? []) {
      if (this.#running >= this.#maxCalls) {
        this.#stats.busy += 1;
      } else {
        this.#run(handler, payload, () => undefined);
      }
    }
  }

  /** Runs a handler and reports its result or refusal, unless the connection has closed. */
  #run(registered: Registered | undefined, payload: Uint8Array, done: (result: Uint8Array | Refusal) => void): void {
    this.#running += 1;
    const finish = (result: Uint8Array | Refusal): void => {
      this.#running -= 1;
      this.#stats.refused += result instanceof Refusal ? 1 : 0;
      if (result instanceof Refusal && result.reason === REASONS.otherSchema) {
        this.#mismatched(registered?.name);
      }
      if (!this.#ended.signal.aborted) {
        done(result);
      }
    };
    if (registered === undefined) {
      finish(new Refusal(REASONS.unknown));
    } else {
      registered.run(payload, this.#caller, finish);
    }
  }
}

function known<T>(all: ReadonlyMap<string, T>, name: string): T {
  const schema = all.get(name);
  if (schema === undefined) {
    throw new RakwireError("bad-option", `the schema has no ${name}`);
  }
  return schema;
}

/**
 * Encodes the arguments of a function, or the value of a signal if there is no `answer`, followed by the fingerprint of
 * the schema.
 */
function packed(name: string, schema: ValueSchema, value: unknown, answer?: ValueSchema): Uint8Array {
  try {
    return Uint8Array.of(...encodingOf(schema).pack(value), ...(trailerOf(name, schema, answer) ?? []));
  } catch (cause) {
    throw new RakwireError("bad-option", "the arguments do not match the schema", { cause });
  }
}

function read(schema: ValueSchema, bytes: Uint8Array): unknown {
  try {
    return encodingOf(schema).unpack(bytes);
  } catch (cause) {
    throw new RakwireError("bad-answer", "the answer does not match the schema; run the same version at both peers", { cause });
  }
}
