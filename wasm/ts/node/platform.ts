/** What Node has beyond browsers: UDP, and files. */

import { readFile } from "node:fs/promises";

import { setDirectTransport } from "../transport/transport.js";
import { setFileReader } from "../wasm.js";
import { openUdp } from "./udp.js";

setDirectTransport(openUdp);
setFileReader(async (url) => new Uint8Array(await readFile(url)));
