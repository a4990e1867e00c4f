// Measures the download size of a client with this package and with other libraries, each bundled alone and minified.

import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

import { build } from "esbuild";

const PACKAGE = fileURLToPath(new URL(".", import.meta.url));
const USE = "globalThis.page = ";

/** The source of a page for each entry, which imports the function that opens a connection. */
export const OWN_CLIENTS = {
  "rakwire": `import { connect } from "rakwire/dist/index.js"; ${USE} connect;`,
  "rakwire/raknet": `import { connect } from "rakwire/dist/raknet.js"; ${USE} connect;`,
  "rakwire/game-protocol": `import { connect } from "rakwire/dist/game-protocol.js"; ${USE} connect;`,
  "rakwire/secure": `import { connect } from "rakwire/dist/secure.js"; ${USE} connect;`,
};

/** {@link OWN_CLIENTS}, and the sources of pages that use other libraries. */
export const CLIENTS = {
  ...OWN_CLIENTS,
  "@geckos.io/client": `import { geckos } from "@geckos.io/client"; ${USE} geckos;`,
  "colyseus.js": `import { Client } from "colyseus.js"; ${USE} Client;`,
  "a plain WebSocket": `${USE} (url) => new WebSocket(url);`,
};

/** Returns the size of a page's source bundled with all its imports, in bytes after gzip. */
export async function loadedBytes(statement) {
  // The other libraries are installed in tests/bundlers.
  const stdin = { contents: statement, resolveDir: `${PACKAGE}tests/bundlers`, sourcefile: "page.js" };
  const options = { stdin, bundle: true, minify: true, format: "esm", target: "es2022", write: false, logLevel: "error", alias: { rakwire: PACKAGE } };
  const { outputFiles } = await build(options);
  return gzipSync(outputFiles[0].contents, { level: 9 }).length;
}
