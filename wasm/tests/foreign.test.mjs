// Two browsers before an unmodified RakNet server, C++ RakNet: by the name of a relay with a certificate, at its bare address,
// and where UDP is blocked. The relay is started with what the case asks for, and nothing else is set up.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createHash, X509Certificate } from "node:crypto";
import { createSocket } from "node:dgram";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { launch } from "./browser.mjs";
import { openFirefox } from "./firefox.mjs";
import { startCpp, startRelay } from "./support.mjs";

const PACKAGE = fileURLToPath(new URL("..", import.meta.url));
/** A name that no resolver knows (RFC 6761 section 6.2). */
const NAME = "game.test";

/** Plays with the server behind the relay of this page, once the transport is the one that is wanted. It runs in a page. */
async function play(wanted) {
  const { connect } = await import("/dist/index.js");
  const connection = await connect("/ws", { target: "game", timeoutMs: 60_000 });
  while (connection.transport !== wanted) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  const heard = [];
  for (let number = 0; number < 100; number++) {
    connection.send(new Uint8Array(700).fill(0xfe).fill(number, 1), { reliability: "reliable-ordered" });
  }
  while (heard.length < 100) {
    const { bytes } = await connection.receive();
    heard.push(bytes.length === 700 && bytes[1] === heard.length && bytes[699] === heard.length);
  }
  const { transport } = connection;
  const { code } = await connection.close();
  return [transport, heard.every(Boolean), code].join(" ");
}

const html = (wanted) => `<!doctype html><title>working</title><script type="module">
  (${play})(${JSON.stringify(wanted)}).then((told) => (document.title = "done " + told), (error) => (document.title = "failed " + error));
</script>`;

/** A folder that is gone at the end of the test. */
function folder(t) {
  const path = mkdtempSync(join(tmpdir(), "rakwire-foreign-"));
  t.after(() => rmSync(path, { recursive: true, force: true, maxRetries: 5 }));
  return path;
}

/** What a relay serves: the package, and a page that plays. */
function site(t, wanted) {
  const path = folder(t);
  for (const part of ["dist", "pkg"]) {
    cpSync(join(PACKAGE, part), join(path, part), { recursive: true });
  }
  writeFileSync(join(path, "index.html"), html(wanted));
  return path;
}

/** A certificate for the name, and the authority that signs it. */
function makeCertificate(t) {
  const path = folder(t);
  const [authority, authorityKey, pem, key] = ["authority.pem", "authority.key", "certificate.pem", "key.pem"].map((name) => join(path, name));
  const make = (...more) => {
    const fresh = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30"];
    execFileSync("openssl", ["req", "-x509", ...fresh, ...more], { stdio: "pipe" });
  };
  make("-subj", "/CN=authority of a test", "-keyout", authorityKey, "-out", authority);
  const signed = ["-CA", authority, "-CAkey", authorityKey, "-addext", "basicConstraints=critical,CA:FALSE"];
  make("-subj", `/CN=${NAME}`, "-addext", `subjectAltName=DNS:${NAME}`, ...signed, "-keyout", key, "-out", pem);
  const { publicKey } = new X509Certificate(readFileSync(pem));
  const spki = createHash("sha256").update(publicKey.export({ type: "spki", format: "der" })).digest("base64");
  return { authority, pem, key, spki };
}

/** A UDP port that answers nothing. */
async function silentPort(t) {
  const socket = createSocket("udp4");
  await new Promise((resolve) => socket.bind(0, "127.0.0.1", resolve));
  t.after(() => socket.close());
  return socket.address().port;
}

/** What Chromium must be told so that it takes the certificate and finds the name. */
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

/** What Firefox must be told: it takes no HTTP/3 where somebody has added an authority. */
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

const BROWSERS = [
  ["Chromium", chromiumTitle],
  ["Firefox", firefoxTitle],
];

for (const [browser, titleOf] of BROWSERS) {
  test(`${browser}: by a name with a certificate a page plays with a C++ server over WebTransport`, { timeout: 300_000 }, async (t) => {
    const cpp = await startCpp(t);
    const certificate = makeCertificate(t);
    const tls = ["--tls-certificate", certificate.pem, "--tls-key", certificate.key];
    // The port, and so the origin of the page, is known when the relay runs.
    const relay = await startRelay(t, { game: cpp.address }, "--serve", site(t, "webtransport"), "--allow-any-origin", ...tls);
    const [, port] = relay.address.split(":");
    assert.equal(await titleOf(`https://${NAME}:${port}/`, certificate), "done webtransport true local");
  });

  test(`${browser}: at a bare address a page plays with a C++ server over WebTransport`, { timeout: 300_000 }, async (t) => {
    const cpp = await startCpp(t);
    const relay = await startRelay(t, { game: cpp.address }, "--serve", site(t, "webtransport"));
    assert.equal(await titleOf(`http://${relay.address}/`), "done webtransport true local");
  });

  test(`${browser}: where UDP is blocked a page plays with a C++ server over a WebSocket`, { timeout: 300_000 }, async (t) => {
    const cpp = await startCpp(t);
    const blocked = String(await silentPort(t));
    const relay = await startRelay(t, { game: cpp.address }, "--serve", site(t, "websocket"), "--webtransport-public-port", blocked);
    assert.equal(await titleOf(`http://${relay.address}/`), "done websocket true local");
  });
}
