// Relays, servers and what looks like them, each with something that is wrong.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { WebSocket, WebSocketServer } from "ws";

import { relayTokens } from "../keys.mjs";
import { startEcho, startRelay } from "../support.mjs";
import { startTcpWay } from "../way.mjs";

/** A UDP socket that answers nothing, as the HOST:PORT of a server; or of one that is gone. */
async function udpPort(t, { isThere }) {
  const socket = createSocket("udp4");
  socket.bind(0, "127.0.0.3");
  await once(socket, "listening");
  const { address, port } = socket.address();
  if (isThere) {
    t.after(() => socket.close());
  } else {
    await new Promise((resolve) => socket.close(resolve));
  }
  return `${address}:${port}`;
}

/** The HOST:PORT of a TCP server that accepts and says nothing; or of one that is gone. */
async function tcpPort(t, { isThere }) {
  const sockets = [];
  const server = createServer((socket) => sockets.push(socket.on("error", () => undefined).pause()));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  const stop = () => {
    sockets.forEach((socket) => socket.destroy());
    server.close();
  };
  if (isThere) {
    t.after(stop);
  } else {
    stop();
  }
  return `127.0.0.1:${port}`;
}

/** The HOST:PORT of a proxy that closes each WebSocket with the code in its URL. */
async function closingProxy(t) {
  const proxy = new WebSocketServer({ host: "127.0.0.1", port: 0, handleProtocols: ([first]) => first });
  await once(proxy, "listening");
  proxy.on("connection", (socket, { url }) => socket.close(Number(new URL(url, "ws://proxy").searchParams.get("code"))));
  t.after(() => proxy.close());
  return `127.0.0.1:${proxy.address().port}`;
}

/** A relay whose one place for this address is taken. */
async function crowdedRelay(t, server) {
  const relay = await startRelay(t, { game: server }, "--clients-per-address", "1", "--exempt", "192.0.2.0/24");
  const first = new WebSocket(`ws://${relay.address}/ws?target=game`);
  t.after(() => first.terminate());
  await once(first, "open");
  return relay.address;
}

/** All places by name, as HOST:PORT, and what makes the one named `way` worse. */
export async function startPlaces(t) {
  const folder = mkdtempSync(join(tmpdir(), "rakwire-failures-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, "bans"), "127.0.0.1\n");
  const { address: server } = await startEcho(t, "--advertise", "a lobby");
  const [dead, silent] = [await udpPort(t, { isThere: false }), await udpPort(t, { isThere: true })];
  const kind = ",kind=raknet";
  const relay = await startRelay(t, { game: server + kind, dead, silent });
  const started = async (...more) => (await startRelay(t, { game: server }, ...more)).address;
  const way = await startTcpWay(t, relay);
  const places = {
    relay: relay.address,
    down: await tcpPort(t, { isThere: false }),
    foreign: await started("--allow-origin", "https://play.example.org"),
    banning: await started("--bans", join(folder, "bans")),
    withTokens: await started("--token-key", relayTokens(t).file),
    blackHole: await tcpPort(t, { isThere: true }),
    crowded: await crowdedRelay(t, server),
    proxy: await closingProxy(t),
    way: new URL(way.url).host,
    server,
    deadServer: dead,
  };
  return { places, control: { cut: () => way.cut(), silence: () => way.silence() } };
}
