// A way over TCP to a relay, which a test cuts.

import { createConnection, createServer } from "node:net";

/** A way to a relay that can be cut, and stay cut for a while. */
export async function startWay(t, relay) {
  const [host, port] = relay.address.split(":");
  const sockets = new Set();
  const way = { isOpen: true, opened: 0, refused: 0 };
  const server = createServer((near) => {
    if (!way.isOpen) {
      way.refused += 1;
      near.destroy();
      return;
    }
    way.opened += 1;
    const far = createConnection({ host, port: Number(port) });
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
  t.after(() => {
    way.cut();
    server.close();
  });
  return way;
}
