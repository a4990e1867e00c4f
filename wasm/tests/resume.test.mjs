// Resuming after the loss of the path to the relay, and control messages of relays. Uses a real relay behind a proxy
// that cuts connections, and fake relays.

import assert from "node:assert/strict";
import { setImmediate as nextTurn } from "node:timers/promises";
import { test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { WebSocket, WebSocketServer } from "ws";

import { connect } from "rakwire";

import { openTransport } from "../dist/transport/relay.js";
import { PROTOCOLS } from "./protocols.mjs";
import { codeOf, echoOf, fails, LIMIT_MS, next, numbered, pattern, startEcho, startMonitoredRelay, startRelay, until } from "./support.mjs";
import { startTcpWay, startUdpWay } from "./way.mjs";

/** The default options of connections in these tests. */
const USUAL = { target: "game", webSocket: WebSocket, timeoutMs: LIMIT_MS };

for (const protocol of PROTOCOLS) {
  test(`${protocol.name}: a connection continues over another WebSocket and loses no message`, async (t) => {
    const echo = await startEcho(t, ...protocol.echo);
    const way = await startTcpWay(t, await startRelay(t, { game: echo.address }));
    const connection = await connect(way.url, { ...USUAL, ...protocol.options });
    const events = [];
    for (const name of ["interrupted", "resumed", "close"]) {
      connection.addEventListener(name, ({ type }) => events.push(type));
    }
    const echoes = new Set();
    connection.onMessage = ({ bytes }) => echoes.add((bytes[1] << 8) | bytes[2]);
    let sent = 0;
    const send = () => {
      for (let count = 0; count < 15; count++) connection.send(numbered(sent++), { reliability: "reliable" });
    };
    for (let cuts = 1; cuts <= 3; cuts++) {
      const { refused } = way;
      send();
      // Sends the messages, so that some are in flight when the path is cut.
      await Promise.resolve();
      way.isOpen = false;
      way.cut();
      await until(() => way.refused > refused, "the client tries to reconnect while the path is cut");
      send();
      way.isOpen = true;
      await until(() => events.length === 2 * cuts, "the connection has resumed");
    }
    await until(() => echoes.size === 90, "all messages are echoed");
    assert.deepEqual(events, Array(3).fill(["interrupted", "resumed"]).flat());
    assert.ok(way.opened >= 4, `${way.opened} WebSockets`);
    assert.equal((await connection.close()).code, "local");
    assert.equal(connection.stats().messagesSent, 90);
  });
}

for (const protocol of PROTOCOLS) {
  for (const percent of [1, 5, 10]) {
    test(`${protocol.name}: nothing is lost or duplicated if ${percent} % of the datagrams between relay and server are lost`, async (t) => {
      const echo = await startEcho(t, ...protocol.echo);
      const lossy = await startUdpWay(t, Number(echo.address.split(":")[1]), { one: 100 / percent });
      const relay = await startRelay(t, { game: `127.0.0.1:${lossy.port}` });
      const connection = await connect(`ws://${relay.address}/ws`, { ...USUAL, ...protocol.options });
      const count = 300;
      const echoes = [];
      connection.onMessage = ({ bytes }) => echoes.push((bytes[1] << 8) | bytes[2]);
      for (let number = 0; number < count; number++) {
        await connection.ready({ length: 1_000, reliability: "reliable" });
        const message = pattern(1_000);
        message.set(numbered(number));
        connection.send(message, { reliability: "reliable" });
      }
      await until(() => echoes.length >= count, "all messages are echoed");
      assert.deepEqual(echoes.sort((one, other) => one - other), Array.from({ length: count }, (_, number) => number));
      assert.ok(lossy.lost > 0, "the lossy path dropped no datagram");
      assert.equal((await connection.close()).code, "local");
    });
  }
}

test("a lost connection without resumption is closed, and a resumable connection is closed when its relay shuts down", async (t) => {
  const echo = await startEcho(t);
  const relay = await startRelay(t, { game: echo.address });
  const way = await startTcpWay(t, relay);
  const open = (options) => connect(way.url, { ...USUAL, ...options });
  const patient = await open();
  const impatient = await open({ resume: false });
  const events = [];
  for (const name of ["interrupted", "resumed"]) patient.addEventListener(name, ({ type }) => events.push(type));
  way.cut();
  assert.equal((await impatient.closed).relayCode, 1006);
  await until(() => events.includes("resumed"), "the connection has resumed");
  // Stops the relay with SIGTERM, so that it announces its shutdown.
  relay.stop("SIGTERM");
  const { code, relayCode } = await patient.closed;
  assert.deepEqual([code, relayCode], ["relay-closed", 1001]);
  assert.deepEqual(events, ["interrupted", "resumed"]);
});

test("an unanswered attempt to resume times out, and the next attempt succeeds", async (t) => {
  const echo = await startEcho(t);
  const way = await startTcpWay(t, await startRelay(t, { game: echo.address }));
  const connection = await connect(way.url, USUAL);
  way.isSilent = true;
  way.cut();
  await until(() => way.unanswered > 0, "the client tries to reconnect");
  way.isSilent = false;
  await new Promise((resolve) => connection.addEventListener("resumed", resolve));
  assert.deepEqual((await echoOf(connection, pattern(100))).bytes, pattern(100));
  assert.equal((await connection.close()).code, "local");
});

for (const protocol of PROTOCOLS) {
  test(`${protocol.name}: a connection can be closed while its relay is unreachable`, async (t) => {
    const echo = await startEcho(t, ...protocol.echo);
    const way = await startTcpWay(t, await startRelay(t, { game: echo.address }));
    const connection = await connect(way.url, { ...USUAL, ...protocol.options });
    way.isSilent = true;
    way.cut();
    await until(() => way.unanswered > 0, "the client tries to reconnect");
    assert.equal((await connection.close()).code, "local");
  });
}

test("a WebSocket that goes silent without closing is replaced", async (t) => {
  const echo = await startEcho(t);
  const way = await startTcpWay(t, await startRelay(t, { game: echo.address }));
  const connection = await connect(way.url, { ...USUAL, silenceTimeoutMs: LIMIT_MS });
  const events = [];
  for (const name of ["interrupted", "resumed"]) connection.addEventListener(name, ({ type }) => events.push(type));
  // The proxy keeps its connections open, but forwards nothing in either direction.
  way.silence();
  connection.send(pattern(100));
  await until(() => events.includes("resumed"), "the connection has resumed");
  assert.deepEqual(events, ["interrupted", "resumed"]);
  assert.deepEqual((await next(connection)).bytes, pattern(100));
  assert.equal((await connection.close()).code, "local");
});

/** Starts a fake relay that calls `play(socket, request, count)` for each WebSocket. */
async function startFakeRelay(t, play) {
  const server = new WebSocketServer({ host: "127.0.0.1", port: 0, handleProtocols: (offered) => [...offered][0] });
  let count = 0;
  server.on("connection", (socket, request) => play(socket, request, ++count));
  await new Promise((resolve) => server.once("listening", resolve));
  t.after(() => {
    server.clients.forEach((client) => client.terminate());
    server.close();
  });
  return `ws://127.0.0.1:${server.address().port}/ws?target=game`;
}

const flow = (more) => JSON.stringify({ type: "flow", resume: "secret", resume_within_ms: 5_000, resumed: false, max_datagram: 1472, ...more });

/** Opens a transport to a relay. Returns it with the list of its events. */
function watch(t, url, more) {
  const events = [];
  let settle;
  const ended = new Promise((resolve) => (settle = resolve));
  const transport = openTransport({ url, carriers: ["websocket"], resume: true, webSocket: WebSocket, ...more }, {
    onTransportOpen: () => events.push("open"),
    onDatagram: (datagram) => events.push(`datagram ${datagram.length}`),
    onInterrupted: () => events.push("interrupted"),
    onResumed: () => events.push("resumed"),
    onRelayNotice: ({ drops, leftMs }) => events.push(drops ? `drops ${JSON.stringify([drops.toClient, drops.toServer])}` : `draining ${leftMs}`),
    onClose: (end) => settle(end),
  });
  t.after(() => transport.close());
  return { events, ended, transport };
}

test("the secret of a flow and a token reach the relay, and the token is not part of a URL", async (t) => {
  const requests = [];
  const url = await startFakeRelay(t, (socket, { url: path, headers }, count) => {
    requests.push([new URL(path, "ws://relay").searchParams.get("resume"), headers["sec-websocket-protocol"], path.includes("t0k.en")]);
    socket.send(flow({ resumed: count > 1 }));
    if (count === 1) setTimeout(() => socket.terminate(), 20);
  });
  const { events } = watch(t, url, { token: "t0k.en-_" });
  await until(() => events.includes("resumed"), "the connection has resumed");
  assert.deepEqual(events, ["open", "interrupted", "resumed"]);
  const protocols = "rakwire.relay.1,rakwire.token.t0k.en-_";
  assert.deepEqual(requests.map(([resume, offered, leaks]) => [resume, offered.replaceAll(" ", ""), leaks]), [[null, protocols, false], ["secret", protocols, false]]);
  await assert.rejects(connect(url, { target: "game", token: "a b", webSocket: WebSocket }), fails("bad-option", /token/));
});

/** Replaces the WebSocket with a class that the test controls. Returns the list of its instances. */
function fakeWebSockets() {
  const opened = [];
  class FakeWebSocket extends EventTarget {
    bufferedAmount = 0;
    #isOpen = false;
    constructor(url) {
      super();
      this.url = url;
      opened.push(this);
    }
    close() {}
    /** Opens the WebSocket if necessary, and delivers a control message. */
    tell(text) {
      if (!this.#isOpen) {
        this.#isOpen = true;
        this.dispatchEvent(new Event("open"));
      }
      this.dispatchEvent(Object.assign(new Event("message"), { data: text }));
    }
    lose() {
      this.dispatchEvent(Object.assign(new Event("close"), { code: 1006, reason: "" }));
    }
  }
  return { opened, FakeWebSocket };
}

test("a lost WebSocket is replaced immediately unless it had just been opened", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  let now = 0;
  t.mock.method(performance, "now", () => now);
  const { opened, FakeWebSocket } = fakeWebSockets();
  const { events } = watch(t, "ws://relay.example.org/ws?target=game", { webSocket: FakeWebSocket });
  opened[0].tell(flow());
  now = 1_000;
  opened[0].lose();
  assert.equal(opened.length, 2, "the first attempt must begin immediately");
  assert.equal(new URL(opened[1].url).searchParams.get("resume"), "secret");
  opened[1].lose();
  assert.equal(opened.length, 2, "the second attempt must be delayed");
  t.mock.timers.tick(150);
  assert.equal(opened.length, 3);
  opened[2].tell(flow({ resumed: true }));
  now += 999;
  opened[2].lose();
  assert.equal(opened.length, 3, "the attempt after a resumption that lasted less than a second must be delayed");
  t.mock.timers.tick(150);
  opened[3].tell(flow({ resumed: true }));
  now += 1_000;
  opened[3].lose();
  assert.equal(opened.length, 5);
  assert.deepEqual(events, ["open", "interrupted", "resumed", "interrupted", "resumed", "interrupted"]);
});

/** The answers of a relay that has forgotten the flow: it opens another flow for the client, or refuses its token. */
const FORGETFUL = {
  "gives the client another": (socket) => socket.send(flow()),
  "refuses its token": (socket) => socket.close(4401, "the token has expired"),
};

for (const [name, answer] of Object.entries(FORGETFUL)) {
  test(`a connection is closed without a code when the relay has forgotten the flow and ${name}`, async (t) => {
    const url = await startFakeRelay(t, (socket, request, count) => {
      if (count > 1) {
        answer(socket);
        return;
      }
      socket.send(flow());
      setTimeout(() => socket.terminate(), 20);
    });
    const { events, ended } = watch(t, url, { token: "t0k.en-_" });
    assert.deepEqual(await ended, { code: "relay-closed", reason: "the relay no longer has the flow of the connection" });
    assert.deepEqual(events, ["open", "interrupted"]);
  });
}

/** The codes with which proxies close WebSockets. */
const PROXY_CODES = [1001, 1011, 1012, 1013, 1014];
const LATER_CODES = [...PROXY_CODES, 4408, 4429];

for (const code of PROXY_CODES) {
  test(`a connection continues after a proxy has closed it with ${code}`, async (t) => {
    const url = await startFakeRelay(t, (socket, _, count) => {
      socket.send(flow({ resumed: count > 1 }));
      if (count === 1) setTimeout(() => socket.close(code, "upstream"), 20);
    });
    const { events } = watch(t, url);
    await until(() => events.includes("resumed"), "the connection has resumed");
    assert.deepEqual(events, ["open", "interrupted", "resumed"]);
  });
}

for (const code of LATER_CODES) {
  test(`a connection continues although attempts to resume were closed with ${code}`, async (t) => {
    const url = await startFakeRelay(t, (socket, _, count) => {
      if (count === 2 || count === 3) {
        socket.close(code, "try again later");
        return;
      }
      socket.send(flow({ resumed: count > 1 }));
      if (count === 1) setTimeout(() => socket.terminate(), 20);
    });
    const { events } = watch(t, url);
    await until(() => events.includes("resumed"), "the connection has resumed");
    assert.deepEqual(events, ["open", "interrupted", "resumed"]);
  });
}

for (const [code, reason] of [[1001, "relay is shutting down"], [1011, "UDP socket to the game server failed"], [4409, "resumed by another connection"], [4404, "unknown target"]]) {
  test(`a connection is closed immediately with this reason of the relay: ${reason}`, async (t) => {
    const url = await startFakeRelay(t, (socket) => {
      socket.send(flow());
      setTimeout(() => socket.close(code, reason), 20);
    });
    const { events, ended } = watch(t, url);
    assert.deepEqual(await ended, { code: "relay-closed", reason: `relay closed: ${reason} (code ${code})`, relayCode: code });
    assert.deepEqual(events, ["open"]);
  });
}

test("resuming at a relay that does not return times out", async (t) => {
  let isGone = false;
  const url = await startFakeRelay(t, (socket) => {
    if (isGone) {
      socket.terminate();
      return;
    }
    isGone = true;
    socket.send(flow({ resume_within_ms: 700 }));
    setTimeout(() => socket.terminate(), 20);
  });
  const { ended, events, transport } = watch(t, url);
  const { code, relayCode } = await ended;
  assert.deepEqual([code, relayCode], ["relay-closed", 1006]);
  assert.deepEqual(events, ["open", "interrupted"]);
  assert.equal(transport.hasRoom, false);
});

test("a client continues after arbitrary messages of a relay", async (t) => {
  const texts = ["", "{", "null", "7", "[]", '"flow"', "{}", '{"type":"flow"}', '{"type":"flow","resume":7,"resume_within_ms":1}', '{"type":"flow","resume":"x","resume_within_ms":"1"}', '{"type":"drops","to_client":7,"to_server":"x"}', '{"type":"later","more":[1]}', "x".repeat(100_000)];
  const url = await startFakeRelay(t, (socket) => {
    texts.forEach((text) => socket.send(text));
    for (const length of [0, 1, 1_400, 65_535, 65_536, 200_000]) socket.send(new Uint8Array(length).fill(0x84));
    setTimeout(() => socket.close(4400, "enough"), 50);
  });
  const { events, ended } = watch(t, url);
  assert.deepEqual(await ended, { code: "relay-closed", reason: "relay closed: enough (code 4400)", relayCode: 4400 });
  assert.equal(events.filter((event) => event.startsWith("datagram")).length, 6);
  // A connection, unlike the bare transport above, also counts drops and tries again after the close.
  const attempt = connect(url, USUAL);
  await assert.rejects(attempt, fails("relay-closed", /enough/));
});

test("drops reported by a relay reach the application only if they are counts", async (t) => {
  const many = (length) => Object.fromEntries(Array.from({ length }, (_, number) => ["x".repeat(number + 2), 1]));
  const notices = [
    { to_client: { queue_full: 3, too_old: 12, unheard_of: 5 }, to_server: { rate_limited: 1 } },
    { to_client: many(40), to_server: "text" },
    { to_client: { too_big: -1, queue_full: "7", __proto__: 3 }, to_server: { send_refused: 1.5, not_handshake: 2 } },
    { to_client: null, to_server: [9] },
  ];
  const url = await startFakeRelay(t, (socket) => {
    notices.forEach((drops) => socket.send(JSON.stringify({ type: "drops", ...drops })));
    socket.close(4400, "enough");
  });
  const { events, ended } = watch(t, url);
  await ended;
  assert.deepEqual(events, [
    "open",
    'drops [{"queueFull":3,"tooOld":12,"unheardOf":5},{"rateLimited":1}]',
    `drops [${JSON.stringify(many(16))},{}]`,
    'drops [{},{"notHandshake":2}]',
    "drops [{},{}]",
  ]);
});

test("a shutdown notice with a valid time is reported, and a datagram with its text is not", async (t) => {
  const notices = [{ left_ms: "7" }, { left_ms: -1 }, {}, { left_ms: null }, { left_ms: 5_000 }, { left_ms: 0 }];
  const url = await startFakeRelay(t, (socket) => {
    socket.send(flow());
    notices.forEach((more) => socket.send(JSON.stringify({ type: "draining", ...more })));
    // A datagram with the text of a control message, which must have no effect.
    socket.send(Buffer.from(JSON.stringify({ type: "draining", left_ms: 1 })));
  });
  const { events } = watch(t, url);
  await until(() => events.some((event) => event.startsWith("datagram")), "the client has received the datagram");
  assert.deepEqual(events, ["open", "draining 5000", "draining 0", "datagram 31"]);
});

for (const protocol of PROTOCOLS) {
  test(`${protocol.name}: a draining relay causes a draining event`, async (t) => {
    const echo = await startEcho(t, ...protocol.echo);
    const relay = await startRelay(t, { game: echo.address }, "--drain-timeout", "60s");
    const connection = await connect(`ws://${relay.address}/ws`, { ...USUAL, ...protocol.options });
    const draining = new Promise((resolve) => connection.addEventListener("draining", ({ leftMs }) => resolve(leftMs), { once: true }));
    void relay.stop("SIGTERM");
    const leftMs = await draining;
    assert.ok(leftMs > 0 && leftMs <= 60_000, String(leftMs));
    await connection.close();
  });

  test(`${protocol.name}: drops reported by the relay are added to the statistics and cause an event`, async (t) => {
    const echo = await startEcho(t, ...protocol.echo);
    const relay = await startRelay(t, { game: echo.address }, "--datagrams-per-second", "50");
    const connection = await connect(`ws://${relay.address}/ws`, { ...USUAL, ...protocol.options });
    assert.deepEqual(connection.stats().relayDrops, { toClient: {}, toServer: {} });
    let toServer;
    connection.addEventListener("relaydrops", ({ drops }) => (toServer = drops.toServer), { once: true });
    await until(() => {
      // Ignores messages that are refused because the send memory is full.
      for (let number = 0; number < 20; number++) codeOf(() => connection.send(pattern(1_000), { reliability: "unreliable" }));
      return toServer !== undefined;
    }, "the relay reports its drops");
    assert.ok(toServer.rateLimited > 0, JSON.stringify(toServer));
    assert.ok(connection.stats().relayDrops.toServer.rateLimited >= toServer.rateLimited);
    await connection.close();
  });
}

/** Returns the number of dropped datagrams to clients in the metrics of a relay, by reason. */
async function droppedToClients(admin) {
  const text = await (await fetch(`http://${admin}/metrics`)).text();
  const rows = text.matchAll(/^rakwire_relay_drops_total\{target="game",direction="to_client",reason="(\w+)"\} (\d+)$/gm);
  const camel = (reason) => reason.replace(/_(.)/g, (_, character) => character.toUpperCase());
  const counts = [...rows].map(([, reason, count]) => [camel(reason), Number(count)]);
  return Object.fromEntries(counts.filter(([, count]) => count > 0));
}

test("a client that does not read for a while is notified of drops and continues", async (t) => {
  const echo = await startEcho(t);
  const server = await startUdpWay(t, Number(echo.address.split(":")[1]));
  // The relay tolerates a stalled client for an hour, so that the flood may take any time on this machine.
  const relay = await startMonitoredRelay(t, { game: `127.0.0.1:${server.port}` }, "--write-stall-timeout", "1h");
  const way = await startTcpWay(t, relay);
  const connection = await connect(way.url, { ...USUAL, silenceTimeoutMs: LIMIT_MS });
  way.pause();
  // Datagrams that the client drops as invalid. The flooding server has no congestion control.
  const datagram = new Uint8Array(1_400);
  let dropped;
  await until(async () => {
    for (let count = 0; count < 2_000; count++) {
      server.sendToClients(datagram);
      // Lets the relay read before its socket buffer is full.
      if (count % 50 === 0) await nextTurn();
    }
    dropped = await droppedToClients(relay.admin);
    return dropped.queueFull > 0;
  }, "the relay has dropped a datagram because a queue was full");
  assert.deepEqual([connection.transport, way.opened], ["websocket", 1]);
  assert.deepEqual(connection.stats().relayDrops, { toClient: {}, toServer: {} });
  way.resume();
  const toClient = () => Object.entries(connection.stats().relayDrops.toClient).sort();
  const isReported = async () => isDeepStrictEqual(toClient(), Object.entries(await droppedToClients(relay.admin)).sort());
  await until(isReported, "the client has the drop counts of the relay");
  assert.ok(connection.stats().relayDrops.toClient.queueFull >= dropped.queueFull);
  assert.deepEqual((await echoOf(connection, pattern(500))).bytes, pattern(500));
  assert.equal((await connection.close()).code, "local");
});

test("the send memory limits the messages queued while the relay is unreachable", async (t) => {
  const echo = await startEcho(t);
  const way = await startTcpWay(t, await startRelay(t, { game: echo.address }));
  const connection = await connect(way.url, { ...USUAL, memory: { blocks: 256 } });
  way.isOpen = false;
  way.cut();
  await new Promise((resolve) => connection.addEventListener("interrupted", resolve));
  let accepted = 0;
  assert.throws(() => {
    for (;;) {
      connection.send(pattern(1_000));
      accepted += 1;
    }
  }, fails("queue-full", /later/));
  assert.ok(connection.bufferedAmount >= accepted * 500, `${connection.bufferedAmount} of ${accepted} messages`);
  way.isOpen = true;
  for (let received = 0; received < accepted; received++) {
    assert.deepEqual((await next(connection)).bytes, pattern(1_000));
  }
  assert.equal((await connection.close()).code, "local");
});
