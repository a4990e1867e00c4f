/** A connection that refuses options that there are not, in every call. The smallest entry of the package has no room for it. */

import { PeerConnection } from "./connection.js";
import { checkNames, READY_OPTIONS, RECEIPT_OPTIONS, SEND_OPTIONS, STATS_OPTIONS, WAIT_OPTIONS } from "./options.js";
import type { CloseInfo, ConnectionStats, Message, Outcome, ReadyOptions, SendOptions, StatsOptions } from "./types.js";
import type { WaitOptions } from "./waits.js";

export class CheckedConnection extends PeerConnection {
  override send(bytes: Uint8Array, options?: SendOptions): void {
    checkNames(options, SEND_OPTIONS);
    super.send(bytes, options);
  }

  override sendWithReceipt(bytes: Uint8Array, options?: SendOptions & WaitOptions): Promise<Outcome> {
    return checked(options, RECEIPT_OPTIONS, () => super.sendWithReceipt(bytes, options));
  }

  override ready(options?: ReadyOptions): Promise<void> {
    return checked(options, READY_OPTIONS, () => super.ready(options));
  }

  override receive(options?: WaitOptions): Promise<Message | undefined> {
    return checked(options, WAIT_OPTIONS, () => super.receive(options));
  }

  override messages(options?: WaitOptions): AsyncIterableIterator<Message> {
    checkNames(options, WAIT_OPTIONS);
    return super.messages(options);
  }

  override close(options?: WaitOptions): Promise<CloseInfo> {
    return checked(options, WAIT_OPTIONS, () => super.close(options));
  }

  override whenClosed(options?: WaitOptions): Promise<CloseInfo> {
    return checked(options, WAIT_OPTIONS, () => super.whenClosed(options));
  }

  override statistics(options?: StatsOptions): AsyncIterableIterator<ConnectionStats> {
    checkNames(options, STATS_OPTIONS);
    return super.statistics(options);
  }
}

/** What a call returns, as soon as it settles; with options that there are not, a promise that rejects. */
function checked<T>(options: object | undefined, known: readonly string[], call: () => Promise<T>): Promise<T> {
  try {
    checkNames(options, known);
  } catch (error) {
    return Promise.reject(error as Error);
  }
  return call();
}
