/** What Node has beyond browsers: UDP, and files. */

import { readFile } from "node:fs/promises";

import { setDirectTransport } from "../transport/transport.js";
import { setFileReader } from "../wasm.js";
import { openUdp, readUdpUrl } from "./udp.js";

setDirectTransport(openUdp, readUdpUrl);
setFileReader(async (url) => new Uint8Array(await readFile(url)));
