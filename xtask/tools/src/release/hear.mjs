// Sends a message through the relay at the URL in the first argument, and prints the length of the echo. Node 20 has no
// built-in WebSocket.
import { connect } from "rakwire";
import { WebSocket } from "ws";

const connection = await connect(process.argv[2], { target: "game", webSocket: WebSocket });
connection.send(Uint8Array.of(0x90, 1, 2, 3), { reliability: "reliable-ordered" });
const answer = await connection.receive();
console.log(answer === undefined ? "the server has left" : `echo of ${answer.bytes.length} bytes`);
await connection.close();
