// Serves the files of a folder.

import { createServer } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { readFile } from "node:fs/promises";
import { extname, join, normalize } from "node:path";

const TYPES = { ".css": "text/css", ".html": "text/html", ".js": "text/javascript", ".mjs": "text/javascript", ".wasm": "application/wasm" };

/** Serves a folder over `http`, or over `https` if `tls` contains a `cert` and its `key`. */
export async function serve(folder, headers = {}, tls = undefined) {
  const answer = async (request, response) => {
    const path = normalize(decodeURIComponent(new URL(request.url, "http://any").pathname));
    try {
      const file = await readFile(join(folder, path.endsWith("/") ? `${path}index.html` : path));
      response.writeHead(200, { "access-control-allow-origin": "*", "content-type": TYPES[extname(path) || ".html"] ?? "application/octet-stream", ...headers });
      response.end(file);
    } catch {
      response.writeHead(404).end();
    }
  };
  const server = tls === undefined ? createServer(answer) : createTlsServer(tls, answer);
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  const stop = async () => {
    const stopped = new Promise((resolve) => server.close(resolve));
    // Browsers keep idle connections open, which would delay `close`.
    server.closeAllConnections();
    await stopped;
  };
  return { url: `http${tls === undefined ? "" : "s"}://127.0.0.1:${port}/`, port, stop };
}
