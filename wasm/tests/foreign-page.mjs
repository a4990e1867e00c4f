// A page that connects to a game server through the relay that serves it, and the browsers that open it.

import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { launch } from "./browser.mjs";
import { openFirefox } from "./firefox.mjs";

const PACKAGE = fileURLToPath(new URL("..", import.meta.url));
/** A name that does not resolve (RFC 6761 section 6.2). */
export const NAME = "game.test";

/**
 * Runs in the page: connects through the page's relay, waits until the wanted transport is in use, and exchanges
 * messages.
 */
async function play(wanted) {
  const { connect } = await import("/dist/index.js");
  const connection = await connect("/ws", { target: "game", timeoutMs: 60_000 });
  while (connection.transport !== wanted) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  const received = [];
  for (let number = 0; number < 100; number++) {
    connection.send(new Uint8Array(700).fill(0xfe).fill(number, 1), { reliability: "reliable-ordered" });
  }
  while (received.length < 100) {
    const { bytes } = await connection.receive();
    received.push(bytes.length === 700 && bytes[1] === received.length && bytes[699] === received.length);
  }
  const { transport } = connection;
  const { code } = await connection.close();
  return [transport, received.every(Boolean), code].join(" ");
}

const html = (wanted) => `<!doctype html><title>working</title><script type="module">
  (${play})(${JSON.stringify(wanted)}).then((result) => (document.title = "done " + result), (error) => (document.title = "failed " + error));
</script>`;

/** Creates a folder that is removed at the end of the test. */
export function folder(t) {
  const path = mkdtempSync(join(tmpdir(), "rakwire-foreign-"));
  t.after(() => rmSync(path, { recursive: true, force: true, maxRetries: 5 }));
  return path;
}

/** Creates the folder that a relay serves: the package, and the page. */
export function site(t, wanted) {
  const path = folder(t);
  for (const part of ["dist", "pkg"]) {
    cpSync(join(PACKAGE, part), join(path, part), { recursive: true });
  }
  writeFileSync(join(path, "index.html"), html(wanted));
  return path;
}

/** Flags that make Chromium trust the certificate and resolve the name. */
const chromiumFlags = (spki) => [
  `--host-resolver-rules=MAP ${NAME} 127.0.0.1`,
  `--ignore-certificate-errors-spki-list=${spki}`,
  "--webtransport-developer-mode",
];

async function chromiumTitle(url, certificate) {
  const browser = await launch(certificate && chromiumFlags(certificate.spki));
  try {
    const page = await browser.newPage();
    await page.goto(url);
    await page.waitForFunction(() => /^(done|failed)/.test(document.title), undefined, { timeout: 180_000 });
    return await page.title();
  } finally {
    await browser.close();
  }
}

/** Preferences that make Firefox use HTTP/3, which it otherwise disables if the user added a certificate authority. */
const FIREFOX_PREFERENCES = {
  "network.dns.localDomains": NAME,
  "network.http.http3.disable_when_third_party_roots_found": false,
};

async function firefoxTitle(url, certificate) {
  const firefox = await openFirefox(certificate && { preferences: FIREFOX_PREFERENCES, authority: certificate.authority });
  try {
    return await firefox.titleOf(url, /^(done|failed)/);
  } finally {
    await firefox.close();
  }
}

/** A function for each browser that opens the page and returns its final title. */
export const BROWSERS = { Chromium: chromiumTitle, Firefox: firefoxTitle };
