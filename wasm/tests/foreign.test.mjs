// Two browsers before an unmodified RakNet server, C++ RakNet: by the name of a relay with a certificate, at its bare address,
// and where UDP is blocked. The relay is started with what the case asks for, and nothing else is set up.

import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { createSocket } from "node:dgram";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { makeCertificate } from "./certificate.mjs";
import { BROWSERS, folder, NAME, site } from "./foreign-page.mjs";
import { startCpp, startRelay } from "./support.mjs";

/** A UDP port that answers nothing. */
async function silentPort(t) {
  const socket = createSocket("udp4");
  await new Promise((resolve) => socket.bind(0, "127.0.0.1", resolve));
  t.after(() => socket.close());
  return socket.address().port;
}

/** A machine of its own, for whoever may make one. */
const MACHINE = ["unshare", ...(process.getuid() === 0 ? [] : ["--map-root-user"]), "--net"];

/** Why there can be no other machines here, or false. */
function noMachines() {
  const [program, ...args] = MACHINE;
  const { status, error, stderr } = spawnSync(program, [...args, "ip", "link", "add", "near", "type", "veth", "peer", "name", "far"], { encoding: "utf8" });
  return status === 0 ? false : `this machine makes no network namespaces with wires: ${error?.message ?? stderr.trim()}`;
}

for (const [browser, titleOf] of Object.entries(BROWSERS)) {
  test(`${browser}: by a name with a certificate a page plays with a C++ server over WebTransport`, { timeout: 300_000 }, async (t) => {
    const cpp = await startCpp(t);
    const certificate = makeCertificate(folder(t), NAME);
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

  // The page is one of `http` and of no machine of its own, so that browsers let it have no WebTransport.
  test(`${browser}: at the bare address of another machine a page plays with a C++ server over data channels`, { timeout: 300_000, skip: noMachines() }, async () => {
    const [program, ...args] = MACHINE;
    const script = fileURLToPath(new URL("bare-address.mjs", import.meta.url));
    const { stdout } = await promisify(execFile)(program, [...args, process.execPath, script, browser]);
    assert.equal(stdout.trim(), "done webrtc true local");
  });

  test(`${browser}: where UDP is blocked a page plays with a C++ server over a WebSocket`, { timeout: 300_000 }, async (t) => {
    const cpp = await startCpp(t);
    const blocked = String(await silentPort(t));
    // Any origin, so that data channels are offered too.
    const more = ["--serve", site(t, "websocket"), "--allow-any-origin", "--webtransport-public-port", blocked];
    const relay = await startRelay(t, { game: cpp.address }, ...more);
    const { webtransport, webrtc } = await (await fetch(`http://${relay.address}/transports`)).json();
    assert.deepEqual([webtransport.port, webrtc.port].map(String), [blocked, blocked]);
    assert.equal(await titleOf(`http://${relay.address}/`), "done websocket true local");
  });
}
