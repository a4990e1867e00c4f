// Run by paths.test.mjs with the arguments HOST PORT: an echo server in Node that prints the addresses of its clients.

import { listen } from "rakwire/server";

const [host, port] = process.argv.slice(2);
const server = await listen({ host, port: Number(port) });
console.log(`listening on ${server.address.host}`);
for await (const connection of server) {
  console.log(`client at ${connection.remoteAddress}`);
  connection.onMessage = ({ bytes }) => connection.send(bytes);
}
