// Chromium and Firefox with an unmodified C++ RakNet server, behind a relay that has a name and a certificate, only an
// address, or no UDP. Only the relay's options differ between the cases.

import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { createSocket } from "node:dgram";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { makeCertificate } from "./certificate.mjs";
import { BROWSERS, folder, NAME, site } from "./foreign-page.mjs";
import { startCpp, startRelay } from "./support.mjs";

/** Returns a UDP port that does not answer. */
async function silentPort(t) {
  const socket = createSocket("udp4");
  await new Promise((resolve) => socket.bind(0, "127.0.0.1", resolve));
  t.after(() => socket.close());
  return socket.address().port;
}

/** The command that creates a network namespace. */
const MACHINE = ["unshare", ...(process.getuid() === 0 ? [] : ["--map-root-user"]), "--net"];

/** Returns the reason why network namespaces cannot be created here, or false. */
function noMachines() {
  const [program, ...args] = MACHINE;
  const { status, error, stderr } = spawnSync(program, [...args, "ip", "link", "add", "near", "type", "veth", "peer", "name", "far"], { encoding: "utf8" });
  return status === 0 ? false : `this machine cannot create network namespaces with veth interfaces: ${error?.message ?? stderr.trim()}`;
}

for (const [browser, titleOf] of Object.entries(BROWSERS)) {
  test(`${browser}: a page of a relay with a name and a certificate reaches a C++ server over WebTransport`, { timeout: 300_000 }, async (t) => {
    const cpp = await startCpp(t);
    const certificate = makeCertificate(folder(t), NAME);
    const tls = ["--tls-certificate", certificate.pem, "--tls-key", certificate.key];
    // The relay chooses its port, so the origin of the page is not known before the relay starts.
    const relay = await startRelay(t, { game: cpp.address }, "--serve", site(t, "webtransport"), "--allow-any-origin", ...tls);
    const [, port] = relay.address.split(":");
    assert.equal(await titleOf(`https://${NAME}:${port}/`, certificate), "done webtransport true local");
  });

  test(`${browser}: a page loaded over plain HTTP from the relay's IP address reaches a C++ server over WebTransport`, { timeout: 300_000 }, async (t) => {
    const cpp = await startCpp(t);
    const relay = await startRelay(t, { game: cpp.address }, "--serve", site(t, "webtransport"));
    assert.equal(await titleOf(`http://${relay.address}/`), "done webtransport true local");
  });

  // A page loaded over plain HTTP from another machine is not a secure context, so browsers give it no WebTransport.
  test(`${browser}: a page loaded over plain HTTP from the IP address of a relay on another machine reaches a C++ server over data channels`, { timeout: 300_000, skip: noMachines() }, async () => {
    const [program, ...args] = MACHINE;
    const script = fileURLToPath(new URL("bare-address.mjs", import.meta.url));
    const { stdout } = await promisify(execFile)(program, [...args, process.execPath, script, browser]);
    assert.equal(stdout.trim(), "done webrtc true local");
  });

  test(`${browser}: a page reaches a C++ server over a WebSocket if UDP is blocked`, { timeout: 300_000 }, async (t) => {
    const cpp = await startCpp(t);
    const blocked = String(await silentPort(t));
    // Any origin, so that data channels are offered as well.
    const more = ["--serve", site(t, "websocket"), "--allow-any-origin", "--webtransport-public-port", blocked];
    const relay = await startRelay(t, { game: cpp.address }, ...more);
    const { webtransport, webrtc } = await (await fetch(`http://${relay.address}/transports`)).json();
    assert.deepEqual([webtransport.port, webrtc.port].map(String), [blocked, blocked]);
    assert.equal(await titleOf(`http://${relay.address}/`), "done websocket true local");
  });
}
