// Sends a message through the relay of the first argument, and prints how long the echo is. Node 20 has no WebSocket of its own.
import { connect } from "rakwire";
import { WebSocket } from "ws";

const connection = await connect(process.argv[2], { target: "game", webSocket: WebSocket });
connection.send(Uint8Array.of(0x90, 1, 2, 3), { reliability: "reliable-ordered" });
const answer = await connection.receive();
console.log(answer === undefined ? "the server has left" : `echo of ${answer.bytes.length} bytes`);
await connection.close();
