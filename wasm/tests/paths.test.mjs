// Paths to the game server with an MTU that falls below the negotiated one, or that are blocked for a while, in
// network namespaces. The clients are behind a relay, or in Node over UDP.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { makeMachines, NETWORKS } from "./machines.mjs";
import { program, until } from "./support.mjs";

const CLIENT = fileURLToPath(new URL("path-client.mjs", import.meta.url));
const SERVER = fileURLToPath(new URL("path-server.mjs", import.meta.url));

/** Starts an echo server. */
function startServer(machines, address, machine = "server") {
  const tool = program("RAKWIRE_BIN", "Build it with `cargo build --release -p rakwire-cli`.");
  return machines.start(machine, "rakwire echo", [tool, "echo", "--listen", address], /listening on (\S+)\n/);
}

/** Connects a client to an echo server, through a relay on the client's machine or over UDP. */
async function startClient(machines, address, transport, machine = "client") {
  const client = await machines.start(machine, "client", [process.execPath, CLIENT, address, transport], /open (\d+)\n/, "SIGTERM");
  const mtus = () => [...client.printed().matchAll(/echoed (\d+)\n/g)].map(([, mtu]) => Number(mtu));
  let rounds = 0;
  /** Sends large messages to the server and back; returns the MTU of the connection afterwards. */
  const echo = async () => {
    rounds += 1;
    client.tell("send");
    await until(() => mtus().length === rounds, "the large messages are echoed");
    return mtus().at(-1);
  };
  return { mtu: Number(client.address), echo };
}

/**
 * The transports, the address families, and the MTUs of the paths and tunnels in bytes. Chromium's WebTransport carries
 * datagrams of 1,024 bytes, which fit every IPv6 link.
 */
const WAYS = [
  { transport: "websocket", family: "IPv4", mtu: 1_400, tunnel: 1_280 },
  { transport: "websocket", family: "IPv6", mtu: 1_400, tunnel: 1_280 },
  { transport: "webtransport", family: "IPv4", mtu: 900, tunnel: 800 },
  { transport: "udp", family: "IPv4", mtu: 1_400, tunnel: 1_280 },
  { transport: "udp", family: "IPv6", mtu: 1_400, tunnel: 1_280 },
];

for (const { transport, family, mtu, tunnel } of WAYS) {
  const { address } = NETWORKS[family];
  test(`${transport}, ${family}: large messages arrive if only the path from the server to the client has a small MTU`, async (t) => {
    const machines = await makeMachines(t);
    machines.setReturnMtu(mtu);
    await startServer(machines, address);
    const { echo } = await startClient(machines, address, transport);
    await echo();
  });

  test(`${transport}, ${family}: large messages arrive through a tunnel that appears during the connection`, async (t) => {
    const machines = await makeMachines(t);
    await startServer(machines, address);
    const { echo } = await startClient(machines, address, transport);
    await echo();
    machines.setPathMtu(tunnel);
    await echo();
  });

  test(`${transport}, ${family}: large messages arrive over a path with a small MTU that drops fragments`, async (t) => {
    const machines = await makeMachines(t);
    machines.setPathMtu(mtu);
    machines.dropFragments();
    await startServer(machines, address);
    const { mtu: reached, echo } = await startClient(machines, address, transport);
    assert.ok(reached <= mtu, "the MTU must not exceed that of the path");
    await echo();
  });
}

test("a client waits while a firewall blocks the path from the relay to the server", async (t) => {
  const machines = await makeMachines(t);
  const { address } = NETWORKS.IPv4;
  await startServer(machines, address);
  machines.forbid();
  const started = startClient(machines, address, "websocket");
  // Prevents an unhandled rejection if the promise fails before it is awaited below.
  started.catch(() => undefined);
  await until(machines.hasForbidden, "the firewall has blocked a datagram of the relay");
  machines.allow();
  const { echo } = await started;
  await echo();
});

/** Machines with link-local addresses: the router has fe80::7 on both links, each of the others fe80::2. */
async function makeLinks(t) {
  const machines = await makeMachines(t);
  for (const machine of ["client", "server"]) {
    machines.run("router", "ip", "address", "add", "fe80::7/64", "dev", `to_${machine}`, "nodad");
    // The kernel adds another link-local address later, once it has detected the link.
    machines.run(machine, "ip", "address", "add", "fe80::2/64", "dev", "router", "nodad");
  }
  return machines;
}

test("udp: a link-local address is reached by its interface name", async (t) => {
  const machines = await makeLinks(t);
  await startServer(machines, "[::]:61111", "router");
  const { echo } = await startClient(machines, "[fe80::7%router]:61111", "udp");
  await echo();
});

test("udp: the interface name may contain characters that host names cannot", async (t) => {
  const machines = await makeLinks(t);
  for (const machine of ["client", "server"]) {
    await startServer(machines, "[::]:61111", machine);
    const { echo } = await startClient(machines, `[fe80::2%to_${machine}]:61111`, "udp", "router");
    await echo();
  }
});

test("a server in Node answers clients on the interfaces that they use", async (t) => {
  const machines = await makeLinks(t);
  const server = await machines.start("router", "server", [process.execPath, SERVER, "::", "61111"], /listening on (\S+)\n/);
  for (const machine of ["client", "server"]) {
    const { echo } = await startClient(machines, "[fe80::7%router]:61111", "udp", machine);
    await echo();
    assert.match(server.printed(), new RegExp(`client at \\[fe80::[\\da-f:]+%to_${machine}\\]:\\d+\n`));
  }
});

test("a server in Node listens on a link-local address", async (t) => {
  const machines = await makeLinks(t);
  const server = await machines.start("router", "server", [process.execPath, SERVER, "fe80::7%to_client", "61111"], /listening on (\S+)\n/);
  assert.equal(server.address, "fe80::7%to_client");
  const { echo } = await startClient(machines, "[fe80::7%router]:61111", "udp");
  await echo();
});
