// Makes the next carriers of a page unresponsive: they open, but everything that they receive is dropped.

/**
 * Runs in the page or the worker that opens carriers. A message on a broadcast channel activates it. It then reports
 * each unresponsive carrier that opens on that channel.
 */
function ignoreAnswers() {
  const channel = new BroadcastChannel("unanswered");
  let isDeaf = false;
  channel.addEventListener("message", ({ data }) => {
    if (typeof data === "boolean") {
      isDeaf = data;
      channel.postMessage("started");
    }
  });
  const opened = () => channel.postMessage("opened");
  const ignore = (target) => {
    target.addEventListener("message", (event) => event.stopImmediatePropagation());
    target.addEventListener("open", opened);
  };
  const { WebSocket, WebTransport, RTCPeerConnection } = globalThis;
  globalThis.WebSocket = class extends WebSocket {
    constructor(...given) {
      super(...given);
      if (isDeaf) ignore(this);
    }
  };
  globalThis.WebTransport = class extends WebTransport {
    constructor(...given) {
      super(...given);
      if (isDeaf) {
        Object.defineProperty(this.datagrams, "readable", { value: new ReadableStream() });
        this.ready.then(opened, () => undefined);
      }
    }
  };
  globalThis.RTCPeerConnection = RTCPeerConnection && class extends RTCPeerConnection {
    createDataChannel(...given) {
      const made = super.createDataChannel(...given);
      if (isDeaf) ignore(made);
      return made;
    }
  };
}

/**
 * Runs in a page: closes the carrier of a connection. The next carrier is unresponsive. Returns the outcome of the
 * connection.
 */
async function goOn([url, transport, inWorker, control, closes, ignoreAnswers]) {
  const { connect } = await import("/dist/index.js");
  const { createWorker } = await import("/dist/worker.js");
  const script = `(${ignoreAnswers})(); importScripts("${location.origin}/pkg/worker.js");`;
  const worker = inWorker ? createWorker(() => new Worker(URL.createObjectURL(new Blob([script])))) : undefined;
  if (!inWorker) (0, eval)(`(${ignoreAnswers})()`);
  const channel = new BroadcastChannel("unanswered");
  const says = (word) =>
    new Promise((resolve) => channel.addEventListener("message", ({ data }) => data === word && resolve()));
  const options = { target: "game", transport, timeoutMs: 60_000, silenceTimeoutMs: 60_000, ...(worker && { worker }) };
  const connection = await connect(url, options);
  // The relay answers the flow request that the connection sent on opening. The echo arrives after that answer.
  connection.send(Uint8Array.of(0xfe), { reliability: "reliable" });
  await connection.receive();
  const events = [];
  const resumed = new Promise((resolve) => {
    for (const name of ["interrupted", "resumed", "close"]) {
      connection.addEventListener(name, () => {
        events.push(name);
        if (name !== "interrupted") resolve();
      });
    }
  });
  const [started, opened] = [says("started"), says("opened")];
  channel.postMessage(true);
  await started;
  await fetch(`${control}${transport === "websocket" ? "cut" : "silence"}`);
  // A silent carrier is only detected while an answer is outstanding.
  connection.send(Uint8Array.of(0xfe, 1), { reliability: "reliable" });
  await Promise.race([opened, connection.closed]);
  if (!closes) {
    channel.postMessage(false);
    await resumed;
  }
  const { code } = await connection.close();
  await worker?.close();
  return JSON.stringify([...events, code]);
}

/** Returns the outcome of a connection in a page that loses its carrier and then gets an unresponsive one. */
export const unanswered = (url, { transport, inWorker }, control, closes) =>
  `(${goOn})(${JSON.stringify([url, transport, inWorker, control, closes, String(ignoreAnswers)])})`;
