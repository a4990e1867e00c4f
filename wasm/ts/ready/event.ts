/** The local state of a ready event, and its wire format (docs/plugins/ready.md). */

import { checkNames, WAIT_OPTIONS } from "../options.js";
import type { SendQueue } from "../plugin/connection.js";
import type { Connection, SendOptions } from "../types.js";
import type { WaitOptions } from "../waits.js";
import { WaitList } from "../waits.js";

const DELIVERY: SendOptions = { reliability: "reliable-ordered" };

/** A peer that the event waits for. */
interface Remote {
  received: ReadyStatus;
  /** The last status sent to the peer. */
  sent: ReadyStatus;
  mustQuery: boolean;
  isQueried: boolean;
  /** True while a message to the peer is queued. */
  isSending: boolean;
}

/** An event that completes when several peers are ready. */
export class ReadyEvent {
  readonly number: number;
  readonly #queues: ReadonlyMap<Connection, SendQueue>;
  readonly #remotes = new Map<Connection, Remote>();
  readonly #waits = new WaitList<void>();
  #status: ReadyStatus = "unset";

  /** @internal */
  constructor(number: number, queues: ReadonlyMap<Connection, SendQueue>) {
    this.number = number;
    this.#queues = queues;
  }

  /** The status of this peer. */
  get status(): ReadyStatus {
    return this.#status;
  }

  /** Returns the last status received from a peer; `undefined` if the event does not wait for the peer. */
  statusOf(connection: Connection): ReadyStatus | undefined {
    return this.#remotes.get(connection)?.received;
  }

  /** True once all peers are ready and have reported this to each other, or a peer has forced the event. */
  get isCompleted(): boolean {
    const areAllSet = (): boolean => [...this.#remotes.values()].every(({ received }) => received === "all-set");
    return this.#status === "force-all-set" || (this.#status === "all-set" && areAllSet());
  }

  /** Resolves when the event completes; immediately if it already has. */
  async whenCompleted(options: WaitOptions = {}): Promise<void> {
    const { signal } = options;
    checkNames(options, WAIT_OPTIONS);
    signal?.throwIfAborted();
    return this.isCompleted ? undefined : this.#waits.add(signal).promise;
  }

  /** Sets whether this peer is ready. Has no effect once the event was forced. */
  set(isReady: boolean): void {
    if (!isReady && this.#status !== "force-all-set") {
      this.#status = "unset";
    } else if (isReady && this.#status === "unset") {
      this.#status = "set";
    }
    this.#update();
  }

  /** Completes the event here and at all peers that wait for this one, even if some peers are not ready. */
  force(): void {
    this.#status = "force-all-set";
    this.#update();
  }

  /** Adds a peer to wait for. Returns false if its connection has not joined. */
  waitFor(connection: Connection): boolean {
    if (!this.#queues.has(connection)) {
      return false;
    }
    if (!this.#remotes.has(connection)) {
      this.#remotes.set(connection, { received: "unset", sent: "unset", mustQuery: true, isQueried: false, isSending: false });
      this.#update();
    }
    return true;
  }

  /** Stops waiting for a peer. Returns false if the event did not wait for it. */
  stopWaitingFor(connection: Connection): boolean {
    const isGone = this.#remotes.delete(connection);
    this.#update();
    return isGone;
  }

  /** Handles a message from a peer. Returns false if the event does not wait for it. @internal */
  take(connection: Connection, message: ReadyMessage): boolean {
    const remote = this.#remotes.get(connection);
    if (remote === undefined) {
      return false;
    }
    if (message === "query") {
      remote.isQueried = true;
    } else if (message === "force-all-set") {
      this.#status = message;
    } else {
      remote.received = message;
    }
    this.#update();
    return true;
  }

  #update(): void {
    const isAnyUnset = [...this.#remotes.values()].some(({ received }) => received === "unset");
    if (this.#status === "set" && !isAnyUnset) {
      this.#status = "all-set";
    } else if (this.#status === "all-set" && isAnyUnset) {
      this.#status = "set";
    }
    this.#remotes.forEach((remote, connection) => this.#sendNext(connection, remote));
    if (this.isCompleted) {
      this.#waits.all().forEach((wait) => wait.resolve());
    }
  }

  /** Sends the next message to a peer. Only one is queued at a time, because later changes may replace it. */
  #sendNext(connection: Connection, remote: Remote): void {
    const message = nextOf(remote, this.#status);
    const queue = this.#queues.get(connection);
    if (message === undefined || queue === undefined || remote.isSending) {
      return;
    }
    remote.isSending = true;
    const onSent = (): void => {
      remote.isSending = false;
      if (message === "query") {
        remote.mustQuery = false;
      } else {
        [remote.sent, remote.isQueried] = [message, false];
      }
      if (this.#remotes.get(connection) === remote) {
        this.#sendNext(connection, remote);
      }
    };
    queue.push({ bytes: encodeReady(message, this.number), options: DELIVERY, onSent, onFailed: () => undefined });
  }
}

/** Returns the next message to a peer: first a query, then the status if it changed or the peer requested it. */
function nextOf({ mustQuery, isQueried, sent }: Remote, status: ReadyStatus): ReadyMessage | undefined {
  if (mustQuery) {
    return "query";
  }
  return (isQueried && status !== "unset") || sent !== status ? status : undefined;
}

/**
 * The status of a peer. `unset`: not ready. `set`: ready. `all-set`: ready, and so are all peers that it waits for.
 * `force-all-set`: forced.
 */
export type ReadyStatus = "unset" | "set" | "all-set" | "force-all-set";
/** A status, or a request for the status. */
type ReadyMessage = ReadyStatus | "query";

const IDS: Readonly<Record<ReadyMessage, number>> = { set: 68, unset: 69, "all-set": 70, query: 71, "force-all-set": 76 };
const MESSAGES = /* @__PURE__ */ Object.keys(IDS) as ReadyMessage[];
/** The message ids, which are the first bytes of all messages. */
export const READY_IDS: readonly number[] = /* @__PURE__ */ Object.values(IDS);
const LENGTH = 5;

export function encodeReady(message: ReadyMessage, event: number): Uint8Array<ArrayBuffer> {
  const bytes = new DataView(new ArrayBuffer(LENGTH));
  bytes.setUint8(0, IDS[message]);
  bytes.setInt32(1, event);
  return new Uint8Array(bytes.buffer);
}

/** Decodes a message. Trailing bytes are ignored. */
export function decodeReady(bytes: Uint8Array): { readonly message: ReadyMessage; readonly event: number } | undefined {
  const message = MESSAGES.find((name) => IDS[name] === bytes[0]);
  if (message === undefined || bytes.length < LENGTH) {
    return undefined;
  }
  return { message, event: new DataView(bytes.buffer, bytes.byteOffset).getInt32(1) };
}
