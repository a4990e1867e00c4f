// A page with a connection, served by the dev server of Vite. Tests save its script to trigger updates.

import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { createServer } from "vite8";

import { launch } from "../browser.mjs";
import { openFirefox } from "../firefox.mjs";
import { until } from "../support.mjs";
import { PAGE } from "./tools.mjs";

const PACKAGE = fileURLToPath(new URL("../..", import.meta.url));

/**
 * The code that handles an update: none, so that Vite reloads the page, or a dispose callback that closes the
 * connection.
 */
export const SCRIPTS = {
  "full reload": "",
  "hot update": "import.meta.hot.accept(); import.meta.hot.dispose(() => connection.close());",
};

const script = (number, update, url, { transport, inWorker }) => `// Save ${number}
  import { connect } from "rakwire";
  import { worker } from "rakwire/worker";
  document.title = "loading ${number}";
  const options = { target: "game", transport: ${JSON.stringify(transport)}, timeoutMs: 60_000, ${inWorker ? "worker" : ""} };
  const connection = await connect(${JSON.stringify(url)}, options);
  document.title = "open ${number}";
  ${update}`;

/** Opens a page in each browser; returns a function for its title. */
const BROWSERS = {
  async Chromium(t, home) {
    const browser = await launch();
    t.after(() => browser.close());
    const page = await browser.newPage();
    await page.goto(home);
    return () => page.title();
  },
  async Firefox(t, home) {
    const firefox = await openFirefox();
    t.after(() => firefox.close());
    const tab = await firefox.openTab(home);
    return () => tab.evaluate("document.title");
  },
};

/**
 * Serves a page that connects to the relay at `url`, and opens it. `save` saves its script, and resolves once the new
 * script has connected.
 */
export async function openDevPage(t, update, url, mode, browser = "Chromium") {
  const folder = mkdtempSync(join(tmpdir(), "rakwire-dev-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const installed = join(folder, "node_modules/rakwire");
  mkdirSync(installed, { recursive: true });
  for (const part of ["dist", "pkg", "package.json"]) {
    cpSync(join(PACKAGE, part), join(installed, part), { recursive: true });
  }
  writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "page", private: true, type: "module" }));
  writeFileSync(join(folder, "index.html"), PAGE);
  const file = join(folder, "main.js");
  const write = (number) => writeFileSync(file, script(number, SCRIPTS[update], url, mode));
  write(1);
  // Saves are reported to Vite directly, because file notifications of the operating system may be late, duplicated or
  // missing on a busy machine.
  const served = { port: 0, host: "127.0.0.1", watch: null };
  let [loads, listening] = [0, 0];
  const counting = (request, response, next) => {
    loads += request.url === "/";
    next();
  };
  const plugins = [{ name: "loads", configureServer: ({ middlewares }) => void middlewares.use(counting) }];
  const server = await createServer({ root: folder, configFile: false, logLevel: "error", server: served, plugins });
  // Vite does not report a file that is saved before its page listens for updates.
  server.ws.on("connection", () => (listening += 1));
  await server.listen();
  t.after(() => server.close());
  const title = await BROWSERS[browser](t, server.resolvedUrls.local[0]);
  let number = 1;
  const isOpen = async () => listening === loads && (await title().catch(() => "")) === `open ${number}`;
  await until(isOpen, "the page connects");
  return {
    loads: () => loads,
    async save() {
      number += 1;
      write(number);
      server.watcher.emit("change", file);
      await until(isOpen, "the changed page connects");
    },
  };
}
