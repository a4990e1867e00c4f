// Paths to a relay or a server that a test can degrade.

import { createSocket } from "node:dgram";
import { createServer as createHttpServer } from "node:http";
import { createConnection, createServer } from "node:net";

/** Starts a TCP path to a relay that can be cut for a while, and that can delay data of the relay. */
export async function startTcpWay(t, relay) {
  const [host, port] = relay.address.split(":");
  const sockets = new Set();
  /** The two ends of each connection. */
  const pairs = [];
  const way = { isOpen: true, isSilent: false, opened: 0, refused: 0, unanswered: 0 };
  const server = createServer((near) => {
    if (way.isSilent) {
      // The connection is accepted but not forwarded.
      way.unanswered += 1;
      sockets.add(near);
      near.on("error", () => undefined);
      near.pause();
      return;
    }
    if (!way.isOpen) {
      way.refused += 1;
      near.destroy();
      return;
    }
    way.opened += 1;
    const far = createConnection({ host, port: Number(port) });
    pairs.push([near, far]);
    for (const [one, other] of [[near, far], [far, near]]) {
      sockets.add(one);
      one.on("error", () => undefined);
      one.on("close", () => other.destroy());
      one.pipe(other);
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  way.url = `ws://127.0.0.1:${server.address().port}/ws`;
  way.cut = () => sockets.forEach((socket) => socket.destroy());
  way.heal = () => undefined;
  // Stops reading the relay's data, so its send buffer fills up.
  way.pause = () => pairs.forEach(([near, far]) => far.unpipe(near).pause());
  way.silence = () => pairs.forEach(([near, far]) => [near.unpipe(far), far.unpipe(near)].forEach((socket) => socket.pause()));
  way.resume = () => pairs.forEach(([near, far]) => far.pipe(near));
  t.after(() => {
    way.cut();
    server.close();
  });
  return way;
}

/**
 * Starts a UDP path to a port of this machine. It can be blocked, and can give its clients other ports.
 *
 * - It drops one in `one` datagrams, and all datagrams longer than `way.longest` bytes.
 * - With `way.isDoubled`, each datagram arrives twice.
 * - The next datagram of a client that is longer than `way.delaysAbove` bytes is held back until `way.release`.
 */
export async function startUdpWay(t, port, { one = Infinity } = {}) {
  const near = createSocket("udp4");
  const clients = new Map();
  const way = { isOpen: true, lost: 0, longest: Infinity, isDoubled: false, delaysAbove: Infinity };
  const delayed = [];
  // The seed of the losses, which are equal in each run.
  let state = 1;
  const passes = (datagram) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    const isLost = state / 2 ** 32 < 1 / one;
    way.lost += isLost;
    return way.isOpen && !isLost && datagram.length <= way.longest;
  };
  const deliver = (send) => (way.isDoubled ? [send, send] : [send]).forEach((each) => each());
  const farSocket = (client, address) => {
    const far = createSocket("udp4");
    far.on("message", (answer) => !clients.get(client).isSilent && passes(answer) && deliver(() => near.send(answer, client, address)));
    return far;
  };
  near.on("message", (datagram, { port: client, address }) => {
    if (!clients.has(client)) {
      clients.set(client, { far: farSocket(client, address), address });
    }
    if (!clients.get(client).isSilent && passes(datagram)) {
      const send = () => clients.get(client).far.send(datagram, port, "127.0.0.1");
      if (datagram.length > way.delaysAbove) {
        way.delaysAbove = Infinity;
        delayed.push(send);
      } else {
        deliver(send);
      }
    }
  });
  await new Promise((resolve) => near.bind(0, "127.0.0.1", resolve));
  t.after(() => [near, ...[...clients.values()].map(({ far }) => far)].forEach((socket) => socket.close()));
  way.port = near.address().port;
  way.release = () => delayed.splice(0).forEach((send) => send());
  /** Gives each client another port, like a NAT that has lost its mappings. Datagrams to the old ports are dropped. */
  way.moveClients = () => {
    for (const [client, place] of clients) {
      place.far.close();
      place.far = farSocket(client, place.address);
    }
  };
  /** Drops datagrams from and to the current clients. New clients are not affected. */
  way.silence = () => clients.forEach((place) => (place.isSilent = true));
  /** Sends a datagram to each client as if it came from the server. */
  way.sendToClients = (datagram) => clients.forEach(({ address }, client) => near.send(datagram, client, address));
  return way;
}

/**
 * Starts a path to a relay for this transport, at `url`, and a control server that degrades it. `silence` blocks open
 * connections, but not new ones. `cut` closes or blocks all connections, and `heal` allows new ones again.
 */
export async function startWay(t, relay, transport) {
  const transports = await (await fetch(`http://${relay.address}/transports`)).json();
  const tcp = await startTcpWay(t, relay);
  const udp = transport === "websocket" ? undefined : await startUdpWay(t, transports[transport].port);
  const offered = udp && { [transport]: { ...transports[transport], port: udp.port } };
  const { cut, heal, silence } = udp === undefined ? tcp : { ...udp, cut: () => void (udp.isOpen = false), heal: () => void (udp.isOpen = true) };
  const changes = { cut, heal, silence };
  const server = createHttpServer(({ url }, response) => {
    const name = url.slice(1);
    changes[name]?.();
    response.writeHead(200, { "access-control-allow-origin": "*", "content-type": "application/json" });
    response.end(JSON.stringify(name === "transports" ? offered : null));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const control = `http://127.0.0.1:${server.address().port}/`;
  return { url: udp === undefined ? tcp.url : `ws://127.0.0.1:${server.address().port}/ws`, control };
}
