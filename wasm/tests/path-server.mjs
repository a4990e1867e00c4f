// Started by paths.test.mjs at a machine: a server in Node at the host and port of its arguments, which sends everything back and prints
// where its clients are seen.

import { listen } from "rakwire/server";

const [host, port] = process.argv.slice(2);
const server = await listen({ host, port: Number(port) });
console.log(`listening on ${server.address.host}`);
for await (const connection of server) {
  console.log(`client at ${connection.remoteAddress}`);
  connection.onMessage = ({ bytes }) => connection.send(bytes);
}
