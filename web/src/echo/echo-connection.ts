/** The connection of this page, which sends and receives texts. */

import { connect, RakwireError } from "rakwire";
import type { CloseInfo, Connection, ConnectionStats, SendOptions } from "rakwire";

import type { Status } from "./status.js";

/** The id of this page's messages. */
const TEXT_ID = 0xfe;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

export class EchoConnection {
  readonly #status: Status;
  readonly #onText: (text: string) => void;
  #connection: Connection | undefined;
  #attempt: AbortController | undefined;

  constructor(status: Status, onText: (text: string) => void) {
    this.#status = status;
    this.#onText = onText;
  }

  async open(relay: string, target: string, protocolVersion: number): Promise<void> {
    this.#status.set("connecting", `Connecting to “${target}” …`);
    this.#connection = undefined;
    this.#attempt = new AbortController();
    try {
      const { signal } = this.#attempt;
      this.#connection = await connect(relay, { target, protocolVersion, signal });
    } catch (error) {
      this.#onFailure(error);
      return;
    }
    this.#status.set("connected", `Connected to “${target}” with protocol ${protocolVersion}.`);
    this.#connection.addEventListener("message", ({ message: { bytes } }) => {
      if (bytes[0] === TEXT_ID) {
        this.#onText(decoder.decode(bytes.subarray(1)));
      }
    });
    this.#onEnd(await this.#connection.closed);
  }

  close(): void {
    this.#attempt?.abort();
    if (this.#connection !== undefined) {
      this.#status.set("connected", "Disconnecting …");
      void this.#connection.close();
    }
  }

  send(text: string, options: SendOptions): void {
    if (this.#connection === undefined) {
      throw new RakwireError("not-connected", "not connected; press Connect first");
    }
    const encoded = encoder.encode(text);
    const bytes = new Uint8Array(1 + encoded.length);
    bytes[0] = TEXT_ID;
    bytes.set(encoded, 1);
    this.#connection.send(bytes, options);
  }

  stats(): ConnectionStats | undefined {
    return this.#connection?.stats();
  }

  #onFailure(error: unknown): void {
    if (this.#attempt?.signal.aborted) {
      this.#status.set("closed", "Cancelled.");
      return;
    }
    const message = error instanceof Error ? error.message : String(error);
    this.#status.set("failed", `Could not connect: ${message}.`);
  }

  #onEnd({ code, reason }: CloseInfo): void {
    const text = code === "local" ? "Disconnected." : `Connection closed: ${reason}.`;
    this.#status.set("closed", text);
  }
}
