/** The network code of all examples: sends the player's position to a server and receives the echo. */

import { connect, FIRST_FREE_ID, RakwireError } from "rakwire";
import { ByteReader, ByteWriter } from "rakwire/codec";
import { worker } from "rakwire/worker";

/** A position on the stage; both numbers are 0 to 1. */
export interface Place {
  readonly x: number;
  readonly y: number;
}

/** The first byte of our messages. */
const PLACE = FIRST_FREE_ID;
const SENDS_PER_SECOND = 30;
/** The URL of the page can select another relay and target. */
const options = new URLSearchParams(location.search);
const RELAY = options.get("relay") ?? "ws://127.0.0.1:8080/ws";
const TARGET = options.get("target") ?? "echo";

const status = document.querySelector("#status") as HTMLElement;

/** Connects, and sends the player's position repeatedly; `onEcho` is called with each echo. */
export async function join(where: () => Place, onEcho: (place: Place) => void): Promise<void> {
  try {
    await using connection = await connect(RELAY, { target: TARGET, worker });
    let echoCount = 0;
    connection.onMessage = ({ bytes }) => {
      const reader = new ByteReader(bytes);
      if (reader.u8() === PLACE) {
        onEcho({ x: reader.f32(), y: reader.f32() });
        document.body.dataset["echoes"] = String(++echoCount);
      }
    };
    const sending = setInterval(() => {
      const { x, y } = where();
      const message = new ByteWriter().u8(PLACE).f32(x).f32(y).finish();
      try {
        // A position is useless once a newer one exists, so it is neither resent nor delivered late.
        connection.send(message, { reliability: "unreliable-sequenced" });
      } catch (error) {
        // If the send memory is full, the position is skipped, because a newer one follows.
        if (!(error instanceof RakwireError) || error.code !== "queue-full") {
          throw error;
        }
      }
    }, 1_000 / SENDS_PER_SECOND);
    const showing = setInterval(() => {
      const { roundTripMs, datagramsLost } = connection.stats();
      status.textContent = `Connected: ${roundTripMs.toFixed(0)} ms, ${echoCount} echoes, ${datagramsLost} datagrams lost`;
    }, 500);
    const { reason } = await connection.closed;
    [sending, showing].forEach(clearInterval);
    status.textContent = `The connection was closed: ${reason}.`;
  } catch (error) {
    status.textContent = error instanceof Error ? error.message : String(error);
  }
}
