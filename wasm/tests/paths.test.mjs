// Clients whose way to the game server is narrower than the handshake showed, or closed for a while, in network namespaces:
// those of a relay, and those in Node that are at the server by UDP.

import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { makeMachines, NETWORKS } from "./machines.mjs";
import { program, until } from "./support.mjs";

const CLIENT = fileURLToPath(new URL("path-client.mjs", import.meta.url));
const SERVER = fileURLToPath(new URL("path-server.mjs", import.meta.url));

/** A server that sends everything back. */
function startServer(machines, address, machine = "server") {
  const tool = program("RAKWIRE_BIN", "Build it with `cargo build --release -p rakwire-cli`.");
  return machines.start(machine, "rakwire echo", [tool, "echo", "--listen", address], /listening on (\S+)\n/);
}

/** A client at a server that sends everything back, through a relay at its own machine or by UDP. */
async function startClient(machines, address, transport, machine = "client") {
  const client = await machines.start(machine, "client", [process.execPath, CLIENT, address, transport], /open (\d+)\n/, "SIGTERM");
  const mtus = () => [...client.printed().matchAll(/echoed (\d+)\n/g)].map(([, mtu]) => Number(mtu));
  let rounds = 0;
  /** Large messages go to the server and come back; returns the MTU of the connection after that. */
  const echo = async () => {
    rounds += 1;
    client.tell("send");
    await until(() => mtus().length === rounds, "large messages come back");
    return mtus().at(-1);
  };
  return { mtu: Number(client.address), echo };
}

/** Chromium's WebTransport carries datagrams of 1,024 bytes, which every link of IPv6 does. */
const WAYS = [
  { transport: "websocket", family: "IPv4", mtu: 1_400, tunnel: 1_280 },
  { transport: "websocket", family: "IPv6", mtu: 1_400, tunnel: 1_280 },
  { transport: "webtransport", family: "IPv4", mtu: 900, tunnel: 800 },
  { transport: "udp", family: "IPv4", mtu: 1_400, tunnel: 1_280 },
  { transport: "udp", family: "IPv6", mtu: 1_400, tunnel: 1_280 },
];

for (const { transport, family, mtu, tunnel } of WAYS) {
  const { address } = NETWORKS[family];
  test(`${transport}, ${family}: large messages arrive where the server's way back is narrower`, async (t) => {
    const machines = await makeMachines(t);
    machines.narrowBack(mtu);
    await startServer(machines, address);
    const { echo } = await startClient(machines, address, transport);
    await echo();
  });

  test(`${transport}, ${family}: large messages arrive through a tunnel that comes up during the connection`, async (t) => {
    const machines = await makeMachines(t);
    await startServer(machines, address);
    const { echo } = await startClient(machines, address, transport);
    await echo();
    machines.narrow(tunnel);
    await echo();
  });

  test(`${transport}, ${family}: large messages arrive where the way is narrower and fragments are dropped`, async (t) => {
    const machines = await makeMachines(t);
    machines.narrow(mtu);
    machines.dropFragments();
    await startServer(machines, address);
    const { mtu: reached, echo } = await startClient(machines, address, transport);
    assert.ok(reached <= mtu, "request 1 is cut to the path");
    await echo();
  });
}

test("a client waits while a firewall forbids the relay its way to the server", async (t) => {
  const machines = await makeMachines(t);
  const { address } = NETWORKS.IPv4;
  await startServer(machines, address);
  machines.forbid();
  const started = startClient(machines, address, "websocket");
  // It is awaited below, and may fail before.
  started.catch(() => undefined);
  await until(machines.hasForbidden, "the relay sends something");
  machines.allow();
  const { echo } = await started;
  await echo();
});

/** Machines with addresses of their links: the router has fe80::7 at both, each of the others fe80::2. */
async function makeLinks(t) {
  const machines = await makeMachines(t);
  for (const machine of ["client", "server"]) {
    machines.run("router", "ip", "address", "add", "fe80::7/64", "dev", `to_${machine}`, "nodad");
    // The kernel makes one later, when it has heard of the link.
    machines.run(machine, "ip", "address", "add", "fe80::2/64", "dev", "router", "nodad");
  }
  return machines;
}

test("udp: an address of a link is reached by the interface that is named with it", async (t) => {
  const machines = await makeLinks(t);
  await startServer(machines, "[::]:61111", "router");
  const { echo } = await startClient(machines, "[fe80::7%router]:61111", "udp");
  await echo();
});

test("udp: the name of the interface may be one that names of hosts cannot have", async (t) => {
  const machines = await makeLinks(t);
  for (const machine of ["client", "server"]) {
    await startServer(machines, "[::]:61111", machine);
    const { echo } = await startClient(machines, `[fe80::2%to_${machine}]:61111`, "udp", "router");
    await echo();
  }
});

test("a server in Node answers clients at the interfaces that they come from", async (t) => {
  const machines = await makeLinks(t);
  const server = await machines.start("router", "server", [process.execPath, SERVER, "::", "61111"], /listening on (\S+)\n/);
  for (const machine of ["client", "server"]) {
    const { echo } = await startClient(machines, "[fe80::7%router]:61111", "udp", machine);
    await echo();
    assert.match(server.printed(), new RegExp(`client at \\[fe80::[\\da-f:]+%to_${machine}\\]:\\d+\n`));
  }
});

test("a server in Node listens at an address of a link", async (t) => {
  const machines = await makeLinks(t);
  const server = await machines.start("router", "server", [process.execPath, SERVER, "fe80::7%to_client", "61111"], /listening on (\S+)\n/);
  assert.equal(server.address, "fe80::7%to_client");
  const { echo } = await startClient(machines, "[fe80::7%router]:61111", "udp");
  await echo();
});
