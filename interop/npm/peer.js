// Echo servers and clients around RakNet libraries of the npm registry. interop/README.md describes the command line;
// `--library NAME` selects the library.
"use strict";
const { createSocket } = require("node:dgram");

const [role, ...rest] = process.argv.slice(2);
const target = role === "server" ? undefined : rest.shift();
const options = {
  port: "0", library: "", count: "10", size: "100", window: "16", timeout: "60", pause: "0", protocol: "",
  reliability: "reliable-ordered",
};
while (rest.length > 0) {
  const name = rest.shift().replace(/^--/, "");
  if (!(name in options) || rest.length === 0) usage(`unknown: --${name}`);
  options[name] = rest.shift();
}
// `--protocol` is ignored, because each library supports only one protocol version.
const RELIABILITIES = ["unreliable", "unreliable-sequenced", "reliable", "reliable-ordered", "reliable-sequenced"];
const reliability = RELIABILITIES.indexOf(options.reliability);
if (reliability < 0) usage(`unknown: --reliability ${options.reliability}`);
const ADVERTISEMENT = "MCPE;a game;800;1.21.80;0;10;1;sub;Survival;1;19132;19133;";

function usage(problem) {
  console.error(problem);
  process.exit(2);
}

/** The server exits when its standard input closes. The program also exits when a library fails. */
process.stdin.on("end", () => role === "server" && process.exit(0)).resume();
process.on("uncaughtException", (error) => fail(`uncaught: ${error.message}`));
process.on("unhandledRejection", (error) => fail(`unhandled: ${error}`));

function fail(error) {
  if (role === "server") console.log(`ended ${error}`);
  else console.log(JSON.stringify({ connected: isConnected, echoed: 0, error }));
  process.exit(1);
}
let isConnected = false;

/** Returns a port that was just free, because not every library reports the port that it uses. */
async function freePort() {
  if (options.port !== "0") return Number(options.port);
  const socket = createSocket("udp4");
  await new Promise((bound) => socket.bind(0, "127.0.0.1", bound));
  const { port } = socket.address();
  await new Promise((closed) => socket.close(closed));
  return port;
}

const servers = {
  async "@serenityjs/raknet"(port) {
    const { Server, Frame, Priority } = require("@serenityjs/raknet");
    const server = new Server({ address: "127.0.0.1", port });
    server.on("error", (error) => console.log(`error ${error.message}`));
    server.on("encapsulated", (connection, bytes) => {
      const frame = new Frame();
      frame.reliability = reliability;
      frame.orderChannel = 0;
      frame.payload = Buffer.from(bytes);
      connection.sendFrame(frame, Priority.Immediate);
    });
    server.start();
    // A timer, because the library's socket does not keep the program running.
    setInterval(() => {}, 1_000);
  },
  async "@jsprismarine/raknet"(port) {
    // Loads single files, because the package's main file immediately listens on a port.
    const Listener = require("@jsprismarine/raknet/listener.js");
    const Packet = require("@jsprismarine/raknet/protocol/encapsulated_packet.js");
    const listener = new Listener();
    listener.on("encapsulated", ({ buffer }, { address, port: from }) => {
      const packet = new Packet();
      packet.reliability = reliability;
      packet.orderChannel = 0;
      packet.buffer = Buffer.from(buffer);
      listener.connections.get(`${address}:${from}`).addEncapsulatedToQueue(packet, 1);
    });
    await listener.listen("127.0.0.1", port);
  },
  async "jsp-raknet"(port) {
    const { Server } = require("jsp-raknet");
    const Packet = require("jsp-raknet/js/protocol/EncapsulatedPacket.js").default;
    const server = new Server("127.0.0.1", port, { toString: () => ADVERTISEMENT, serverId: "1" });
    server.on("encapsulated", ({ buffer }, { hash }) => {
      const packet = new Packet();
      packet.reliability = reliability;
      packet.orderChannel = 0;
      packet.buffer = Buffer.from(buffer);
      server.connections.get(hash)?.addEncapsulatedToQueue(packet, 1);
    });
    await server.listen();
  },
  async "raknet-node"(port) {
    const { RaknetServer } = require("raknet-node");
    const server = await RaknetServer.bind(`127.0.0.1:${port}`);
    const echo = async (connection) => {
      try {
        for (;;) await connection.send(await connection.recv());
      } catch {
        // The client has left.
      }
    };
    (async () => {
      for (;;) void echo(await server.accept());
    })();
  },
};

/** For each library, a function that opens a connection and returns functions that send, receive and close. */
const clients = {
  async "jsp-raknet"(host, port) {
    const { Client } = require("jsp-raknet");
    const Packet = require("jsp-raknet/js/protocol/EncapsulatedPacket.js").default;
    const client = new Client(host, port);
    const inbox = [];
    let wake = () => {};
    client.on("encapsulated", ({ buffer }) => {
      inbox.push(Buffer.from(buffer));
      wake();
    });
    client.on("error", (error) => fail(String(error)));
    await new Promise((connected) => {
      client.once("connected", connected);
      client.connect();
    });
    return {
      send(buffer) {
        const packet = new Packet();
        packet.reliability = reliability;
        packet.orderChannel = 0;
        packet.buffer = buffer;
        const { connection } = client;
        if (connection.addEncapsulatedToQueue) connection.addEncapsulatedToQueue(packet, 1);
        else connection.sendPacket(packet);
      },
      async receive() {
        while (inbox.length === 0) await new Promise((arrived) => (wake = arrived));
        return inbox.shift();
      },
      close: () => client.close("bye"),
    };
  },
  async "raknet-node"(host, port) {
    const connection = await require("raknet-node").RaknetClient.connect(`${host}:${port}`);
    return {
      send: (buffer) => connection.send(buffer),
      receive: () => connection.recv(),
      close: () => connection.close(),
    };
  },
};

const pings = {
  "jsp-raknet": (host, port) =>
    new Promise((answered) => {
      const { Client } = require("jsp-raknet");
      new Client(host, port).ping((name) => answered(String(name)));
    }),
  "raknet-node": async (host, port) =>
    JSON.stringify(await require("raknet-node").RaknetClient.ping(`${host}:${port}`)),
};

/** Builds message `number`; see interop/README.md. */
function message(number, size) {
  const bytes = Buffer.alloc(size);
  bytes[0] = 0xfe;
  bytes.writeUInt32BE(number, 1);
  for (let at = 5; at < size; at += 1) bytes[at] = (31 * number + 7 * at + 13 * Math.floor(at / 256)) & 255;
  return bytes;
}

async function beClient(connect, host, port) {
  const [count, size, window] = [options.count, options.size, options.window].map(Number);
  const connection = await connect(host, port);
  isConnected = true;
  const start = process.hrtime.bigint();
  let sent = 0;
  for (let echoed = 0; echoed < count; echoed += 1) {
    for (; sent < count && sent - echoed < window; sent += 1) {
      if (sent + 1 === count) await new Promise((passed) => setTimeout(passed, Number(options.pause) * 1_000));
      await connection.send(message(sent, size));
    }
    const echo = await connection.receive();
    if (!echo.equals(message(echoed, size))) fail(`message ${echoed} came back changed or out of order`);
  }
  const seconds = Number(process.hrtime.bigint() - start) / 1e9;
  console.log(JSON.stringify({ connected: true, echoed: count, bytes: count * size, seconds }));
  await connection.close();
  setTimeout(() => process.exit(0), 300);
}

async function main() {
  const known = { server: servers, client: clients, ping: pings }[role];
  const run = known?.[options.library];
  if (run === undefined) usage(`usage: server|client|ping, --library ${Object.keys(known ?? servers).join("|")}`);
  if (role === "server") {
    const port = await freePort();
    await run(port);
    console.log(`ready ${port}`);
    return;
  }
  setTimeout(() => fail("timeout"), Number(options.timeout) * 1_000).unref();
  const [, host, port] = /^(.*):(\d+)$/.exec(target);
  if (role === "ping") {
    console.log(await run(host, Number(port)));
    process.exit(0);
  }
  await beClient(run, host, Number(port));
}

main().catch((error) => fail(String(error)));
