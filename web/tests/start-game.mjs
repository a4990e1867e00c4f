// Starts the game for tests of its page.

import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { program, start, startRelay } from "./support.mjs";

const PAGE = fileURLToPath(new URL("../dist", import.meta.url));

/** Starts a game with this many bots, and returns its URL on its relay. */
export async function startGame(t, bots = 1) {
  const path = join(dirname(program("RAKWIRE_BIN", "Build all with `cargo build --workspace --bins --examples`.")), "snowfight-server");
  const args = ["--listen", "127.0.0.1:0", "--listen-raknet", "127.0.0.1:0", "--bots", String(bots)];
  const game = await start(t, "snowfight-server", path, args, /listening on (\S+) and/);
  const relay = await startRelay(t, { snowfight: game.address }, "--serve", PAGE);
  return `http://${relay.address}/`;
}
