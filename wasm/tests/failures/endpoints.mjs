// The endpoints to which the failure tests connect: relays, game servers and fakes, each with one defect.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { WebSocket, WebSocketServer } from "ws";

import { relayTokens } from "../keys.mjs";
import { startEcho, startRelay } from "../support.mjs";
import { startTcpWay, startWay } from "../way.mjs";

/** The close codes of proxies, and the close code of a full relay. */
const CODES = [1001, 1011, 1012, 1013, 1014, 4429];

/** Returns the HOST:PORT of a UDP socket that does not answer, or of a closed socket. */
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

/** Returns the HOST:PORT of a TCP server that accepts connections and sends nothing, or of a closed server. */
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

/** Starts a proxy that closes each WebSocket with the code in the URL of the WebSocket. Returns its HOST:PORT. */
async function closingProxy(t) {
  const proxy = new WebSocketServer({ host: "127.0.0.1", port: 0, handleProtocols: ([first]) => first });
  await once(proxy, "listening");
  proxy.on("connection", (socket, { url }) => {
    const code = new URL(url, "ws://proxy").searchParams.get("code");
    // A client of an earlier test that still tries this port sends no code.
    return code === null ? socket.terminate() : socket.close(Number(code));
  });
  t.after(() => proxy.close());
  return `127.0.0.1:${proxy.address().port}`;
}

/**
 * Starts a proxy, at HOST:PORT, that forwards WebSockets to a relay. To the relay, all changes look like lost
 * connections:
 *
 * - `close` closes the open WebSockets with a code.
 * - `refuse` cuts the open WebSockets, and closes the next one immediately with a code.
 * - `ignore` cuts the open WebSockets, and blocks later ones until `answer`. Both `answer` and `ignored` first wait for
 *   a blocked WebSocket.
 */
async function openProxy(t, relay) {
  const proxy = new WebSocketServer({ host: "127.0.0.1", port: 0, handleProtocols: ([first]) => first });
  await once(proxy, "listening");
  let refusal;
  let onIgnored;
  let ignored;
  proxy.on("connection", (near, { url, headers }) => {
    if (onIgnored !== undefined) {
      near.on("error", () => undefined);
      onIgnored();
      return;
    }
    if (refusal !== undefined) {
      near.close(refusal);
      refusal = undefined;
      return;
    }
    const far = new WebSocket(`ws://${relay.address}${url}`, headers["sec-websocket-protocol"]?.split(/, */));
    const early = [];
    near.on("message", (data, binary) => (far.readyState === WebSocket.OPEN ? far.send(data, { binary }) : early.push([data, binary])));
    far.on("open", () => early.forEach(([data, binary]) => far.send(data, { binary })));
    far.on("message", (data, binary) => near.send(data, { binary }));
    far.on("close", () => near.terminate());
    [near, far].forEach((socket) => socket.on("error", () => undefined));
    near.on("close", () => far.terminate());
  });
  t.after(() => {
    proxy.clients.forEach((client) => client.terminate());
    proxy.close();
  });
  const close = (code) => proxy.clients.forEach((client) => client.close(code));
  const refuse = (code) => {
    refusal = code;
    proxy.clients.forEach((client) => client.terminate());
  };
  const ignore = () => {
    ignored = new Promise((resolve) => (onIgnored = resolve));
    proxy.clients.forEach((client) => client.terminate());
  };
  const answer = async () => {
    await ignored;
    onIgnored = undefined;
  };
  return { address: `127.0.0.1:${proxy.address().port}`, close, refuse, ignore, ignored: () => ignored, answer };
}

/** Starts a relay that allows one client per address, and takes that slot. */
async function crowdedRelay(t, server) {
  const relay = await startRelay(t, { game: server }, "--clients-per-address", "1", "--exempt", "192.0.2.0/24");
  const first = new WebSocket(`ws://${relay.address}/ws?target=game`);
  t.after(() => first.terminate());
  await once(first, "open");
  return relay.address;
}

/** Returns the HOST:PORT of all endpoints by name, and a function that degrades the path of the endpoint `way`. */
export async function startEndpoints(t) {
  const folder = mkdtempSync(join(tmpdir(), "rakwire-failures-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, "bans"), "127.0.0.1\n");
  const { address: server } = await startEcho(t, "--advertise", "a lobby");
  const [dead, silent] = [await udpPort(t, { isThere: false }), await udpPort(t, { isThere: true })];
  const kind = ",kind=raknet";
  const relay = await startRelay(t, { game: server + kind, dead, silent });
  const started = async (...more) => (await startRelay(t, { game: server }, ...more)).address;
  const way = await startTcpWay(t, relay);
  const through = await openProxy(t, relay);
  const endpoints = {
    relay: relay.address,
    down: await tcpPort(t, { isThere: false }),
    foreign: await started("--allow-origin", "https://play.example.org"),
    banning: await started("--bans", join(folder, "bans")),
    withTokens: await started("--token-key", relayTokens(t).file),
    blackHole: await tcpPort(t, { isThere: true }),
    crowded: await crowdedRelay(t, server),
    proxy: await closingProxy(t),
    way: new URL(way.url).host,
    openProxy: through.address,
    server,
    deadServer: dead,
  };
  const byCode = (name) => CODES.map((code) => [`${name}-${code}`, () => through[name](code)]);
  const { ignore, ignored, answer } = through;
  return { endpoints, control: { cut: () => way.cut(), silence: () => way.silence(), ignore, ignored, answer, ...Object.fromEntries(["close", "refuse"].flatMap(byCode)) } };
}

/** Starts a path to a relay for each of these transports. */
export async function startWays(t, transports) {
  const { address: server } = await startEcho(t);
  const relay = await startRelay(t, { game: `${server},kind=raknet` }, "--allow-any-origin");
  const ways = {};
  for (const transport of transports) {
    ways[transport] = await startWay(t, relay, transport);
  }
  return ways;
}
