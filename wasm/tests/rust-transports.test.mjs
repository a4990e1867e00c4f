// The transports of a Rust program in a page: WebTransport, a WebSocket, and the errors if neither works. The tests of
// the npm package are in `transports.test.mjs` and `race.test.mjs`.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { stoppableTimers } from "./stop-timers.mjs";
import { DISCONNECTED } from "./leave.mjs";
import { openExamplePage } from "./rust-example.mjs";
import { startEcho, startLoggedEcho, startRelay, until } from "./support.mjs";

const LIMIT = { timeout: 600_000 };
const ENDED = /(?<= disconnected .*reason=).*/g;

/**
 * Connects with both protocols in the page, and stores the connections in `globalThis.open`. Returns the transports or
 * the error.
 */
function open(page, transport, url = "/ws", targets = ["raknet", "game"]) {
  return page.evaluate(
    async ([url, targets, transport]) => {
      const example = await import("/echo.js");
      await example.default();
      try {
        globalThis.open = await example.open(url, ...targets, transport);
        return globalThis.open.transports();
      } catch (error) {
        return error.message;
      }
    },
    [url, targets, transport],
  );
}

/** Sends messages with both protocols, and waits for their echoes. */
const exchange = (page) =>
  page.evaluate(async () => {
    for (let sent = 0; sent < 20; sent++) {
      globalThis.open.send();
    }
    await globalThis.open.receive(20);
  });

async function startKinds(t, kinds, ...more) {
  const [raknet, game] = [await startLoggedEcho(t), await startLoggedEcho(t, "--protocol", "game")];
  const targets = { raknet: `${raknet.address},kind=${kinds.raknet}`, game: `${game.address},kind=${kinds.game}` };
  const started = await openExamplePage(t, targets, ...more);
  return { ...started, servers: [raknet, game] };
}

/**
 * Starts a relay that knows the protocols of its targets. WebTransport may lose the last datagram of a client, so
 * this relay also notifies the server.
 */
const start = (t, ...more) => startKinds(t, { raknet: "raknet", game: "game-protocol" }, ...more);

test("a Rust program sends short and long messages over WebTransport, and its servers are notified when it closes", LIMIT, async (t) => {
  const { page, servers } = await start(t);
  for (const transport of ["webtransport", "auto"]) {
    assert.equal(await open(page, transport), "WebTransport WebTransport");
    await exchange(page);
    await page.evaluate(() => globalThis.open.close());
  }
  // The clients closed both connections to each server, and none timed out.
  const ends = ({ logged }) => logged().match(ENDED) ?? [];
  await until(() => servers.every((server) => ends(server).length === 2), "both servers are notified");
  assert.deepEqual([...new Set(servers.flatMap(ends))], [DISCONNECTED]);
  const long = await page.evaluate(async () => {
    const { play, play_game_protocol: playGame } = await import("/echo.js");
    return [await play("/ws", "raknet", "webtransport"), await playGame("/ws", "game", "webtransport")];
  });
  assert.deepEqual(long, ["echoed 6 and 150000 bytes", "echoed 5 and 129024 bytes"]);
});

test("a Rust program closes its connections without waiting for a timer, over each transport", LIMIT, async (t) => {
  const { page } = await start(t);
  for (const transport of ["webtransport", "websocket"]) {
    await page.evaluate(`globalThis.timers = (${stoppableTimers})()`);
    await open(page, transport);
    await exchange(page);
    const closed = await page.evaluate(async () => {
      const { timers, open } = globalThis;
      timers.stop();
      const ended = await timers.outcome(open.close().then(() => "closed"));
      timers.restore();
      return ended;
    });
    assert.equal(closed, "closed", transport);
  }
});

test("the servers of a Rust program are notified when its page is left, over each transport", LIMIT, async (t) => {
  // A relay with `raw` targets does not disconnect on behalf of its clients, so the program must.
  const { page, servers } = await startKinds(t, { raknet: "raw", game: "raw" });
  const ends = () => servers.map(({ logged }) => logged().match(ENDED) ?? []);
  let lefts = 0;
  for (const transport of ["webtransport", "websocket"]) {
    // A browser may lose a datagram of WebTransport.
    let last;
    for (let tries = 0; tries < 3 && last?.every((reason) => reason === DISCONNECTED) !== true; tries++) {
      await open(page, transport);
      await exchange(page);
      await page.reload();
      lefts += 1;
      await until(() => ends().every(({ length }) => length === lefts), `the servers are notified, by ${transport}`);
      last = ends().map((reasons) => reasons.at(-1));
    }
    assert.deepEqual(last, [DISCONNECTED, DISCONNECTED], transport);
  }
});

test("a Rust program is notified over WebTransport when its relay stops", LIMIT, async (t) => {
  const { page, relay } = await start(t, "--drain-timeout", "0s");
  assert.equal(await open(page, "webtransport"), "WebTransport WebTransport");
  const ended = page.evaluate(() => globalThis.open.ended());
  void relay.stop("SIGTERM");
  assert.match(await ended, /^relay closed: relay is shutting down \(code 1001\); relay closed: relay is shutting down \(code 1001\)$/);
});

test("a Rust program is notified of the shutdown of its relay over each transport", LIMIT, async (t) => {
  for (const transport of ["webtransport", "websocket"]) {
    const { page, relay } = await start(t, "--drain-timeout", "60s");
    await open(page, transport);
    const draining = page.evaluate(async () => [...(await globalThis.open.draining())]);
    void relay.stop("SIGTERM");
    const left = await draining;
    assert.ok(left.every((ms) => ms > 0 && ms <= 60_000), `${transport}: ${left}`);
    await page.evaluate(() => globalThis.open.close());
  }
});

test("a Rust program is refused over WebTransport with the reason of the relay", LIMIT, async (t) => {
  const { page } = await start(t);
  const foreign = await startRelay(t, { raknet: "127.0.0.1:9" }, "--allow-origin", "https://play.example.org");
  const folder = mkdtempSync(join(tmpdir(), "rakwire-bans-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, "bans"), "127.0.0.1\n");
  const banned = await startRelay(t, { raknet: "127.0.0.1:9" }, "--bans", join(folder, "bans"));
  for (const transport of ["webtransport", "auto"]) {
    assert.match(await open(page, transport, "/ws", ["missing", "game"]), /^relay closed: unknown target 'missing'.* \(code 4404\)$/);
    assert.match(await open(page, transport, `ws://${foreign.address}/ws`), /^relay closed: .*origin.* \(code 4403\)$/);
    assert.equal(await open(page, transport, `ws://${banned.address}/ws`), "relay closed: this address is banned (code 4403)");
  }
});

test("without WebTransport, a Rust program uses a WebSocket, or fails if it allows only WebTransport", LIMIT, async (t) => {
  const without = await start(t, "--webtransport", "off");
  assert.equal(await open(without.page, "auto"), "WebSocket WebSocket");
  await exchange(without.page);
  assert.equal(await open(without.page, "webtransport"), "connection to the relay lost (code 1006)");
  const { page } = await start(t);
  await page.evaluate(() => delete globalThis.WebTransport);
  assert.equal(await open(page, "auto"), "WebSocket WebSocket");
  await exchange(page);
  assert.equal(await open(page, "webtransport"), "this browser has no WebTransport; use Transport::Auto or Transport::WebSocket");
});

/** Replaces the browser's WebTransport class with one whose `ready` and `closed` promises come from these functions. */
const withSessions = (page, { ready, closed = "() => new Promise(() => {})" }) =>
  page.evaluate(
    ([ready, closed]) => {
      const [whenReady, whenClosed] = [ready, closed].map((text) => (0, eval)(text));
      globalThis.sessionsClosed = 0;
      globalThis.WebTransport = class {
        ready = whenReady();
        closed = whenClosed();
        close() {
          globalThis.sessionsClosed += 1;
        }
      };
    },
    [ready, closed],
  );

const NEVER = "() => new Promise(() => {})";
const FAILS = "() => Promise.reject(new Error('no UDP'))";

test("a Rust program opens a WebSocket while WebTransport is slow, or immediately when it fails", LIMIT, async (t) => {
  const { page } = await start(t);
  await withSessions(page, { ready: NEVER });
  assert.equal(await open(page, "auto"), "WebSocket WebSocket");
  await exchange(page);
  assert.equal(await page.evaluate(() => globalThis.sessionsClosed), 2, "both WebTransport sessions must be closed after the WebSocket has opened");
  // The WebSocket opens although the timer of the head start never fires.
  await page.evaluate(() => {
    const { setTimeout } = globalThis;
    globalThis.setTimeout = (callback, ms) => (ms === 250 ? 0 : setTimeout(callback, ms));
  });
  await withSessions(page, { ready: FAILS, closed: FAILS });
  assert.equal(await open(page, "auto"), "WebSocket WebSocket");
  await exchange(page);
});

test("an open WebSocket of a Rust program is delayed briefly for WebTransport in progress", LIMIT, async (t) => {
  const { page } = await start(t);
  // The head start expires immediately, and the delay of the open WebSocket never. WebTransport opens later, and the
  // WebSocket must wait for it.
  await page.evaluate(() => {
    const { setTimeout, WebTransport } = globalThis;
    globalThis.setTimeout = (callback, ms) => {
      if (ms === 250) return setTimeout(callback, 0);
      return globalThis.yields === undefined && ms < 250 ? 0 : setTimeout(callback, ms);
    };
    globalThis.sockets = [];
    globalThis.WebSocket = class extends globalThis.WebSocket {
      constructor(...given) {
        super(...given);
        globalThis.sockets.push(new Promise((resolve) => this.addEventListener("open", resolve)));
      }
    };
    globalThis.WebTransport = class extends WebTransport {
      get ready() {
        return super.ready.then(async (ready) => {
          await Promise.all(globalThis.sockets);
          globalThis.yields = true;
          return ready;
        });
      }
    };
  });
  assert.match(await open(page, "auto"), /^WebTransport /);
});

test("a Rust program gets an error immediately when all carriers fail in any order", LIMIT, async (t) => {
  const { page } = await start(t);
  await page.evaluate(() => {
    const { setTimeout } = globalThis;
    globalThis.setTimeout = (callback, ms) => setTimeout(callback, ms === 250 ? 0 : ms);
    globalThis.WebSocket = class extends EventTarget {
      static OPEN = 1;
      readyState = 0;
      bufferedAmount = 0;
      constructor() {
        super();
        queueMicrotask(() => this.onclose(Object.assign(new Event("close"), { code: 1006, reason: "" })));
      }
      close() {}
    };
  });
  for (const ready of [FAILS, "() => new Promise((_, reject) => setTimeout(() => reject(new Error('no UDP')), 100))"]) {
    await withSessions(page, { ready, closed: NEVER });
    assert.equal(await open(page, "auto"), "connection to the relay lost (code 1006)");
  }
});

test("a Rust program limits the wait for the relay's transports, and cancels the wait with the attempt", LIMIT, async (t) => {
  const { page } = await start(t);
  const outcome = await page.evaluate(async () => {
    const example = await import("/echo.js");
    await example.default();
    const { setTimeout } = globalThis;
    const signals = [];
    globalThis.fetch = (_url, { signal }) => {
      signals.push(signal);
      return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
    };
    globalThis.setTimeout = (callback, ms) => setTimeout(callback, ms === 10_000 ? 0 : ms);
    const error = await example.open("/ws", "raknet", "game", "webtransport").catch(({ message }) => message);
    globalThis.setTimeout = setTimeout;
    await example.give_up("/ws", "raknet", "webtransport");
    // Cancels the attempt before or after its request was sent.
    await new Promise((resolve) => setTimeout(resolve, 0));
    return [error, signals.map(({ aborted }) => aborted)];
  });
  assert.deepEqual(outcome, ["connection to the relay lost (code 1006)", [true, true]]);
});

test("a Rust program finds the announced WebSocket and refuses invalid addresses", LIMIT, async (t) => {
  const { page, relay } = await start(t);
  for (const url of ["/", "/wss", `ws://${relay.address}/game`, `http://${relay.address}/ws#part`]) {
    assert.equal(await open(page, "websocket", url), "WebSocket WebSocket", url);
    await exchange(page);
  }
  for (const url of [relay.address, "localhost:8080", "udp://127.0.0.1:9", `ws://user:secret@${relay.address}/ws`, "ws://"]) {
    assert.equal(await open(page, "auto", url), "the URL of a relay begins with ws://, wss://, http:// or https://, and has no user and no password", url);
  }
});

test("a ping of a Rust program finds the announced WebSocket", LIMIT, async (t) => {
  const echo = await startEcho(t, "--advertise", "a lobby");
  const { page } = await openExamplePage(t, { game: echo.address });
  const said = await page.evaluate(async () => {
    const example = await import("/echo.js");
    await example.default();
    return [await example.ping("/ws", "game"), await example.ping("/", "game")];
  });
  assert.deepEqual(said, ["a lobby", "a lobby"]);
});

test("a Rust program reaches a relay at localhost over WebTransport at either address", LIMIT, async (t) => {
  const { page, servers } = await start(t);
  const targets = { raknet: servers[0].address, game: servers[1].address };
  for (const listen of ["127.0.0.1:0", "[::1]:0"]) {
    const { address } = await startRelay(t, targets, "--listen", listen);
    const url = `ws://localhost:${new URL(`http://${address}`).port}/ws`;
    assert.equal(await open(page, "webtransport", url), "WebTransport WebTransport", listen);
    await exchange(page);
  }
});
