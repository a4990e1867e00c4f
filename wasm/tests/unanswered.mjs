// Makes the next carriers of a page unresponsive: they open, and everything received by them is dropped.

/**
 * Runs in the page or the worker that opens carriers. A channel starts it, and it reports there which carriers have
 * opened since.
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

/** Runs in a page: loses its carrier, and gets no answer from the next one; returns the outcome of the connection. */
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
  // A relay names the flow when the connection requests it, which happens on opening. The echo arrives after that.
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
  // Sends something, so that a missing answer is noticed.
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

/** Returns the outcome of a connection in a page after the loss of its carrier, with an unresponsive next one. */
export const unanswered = (url, { transport, inWorker }, control, closes) =>
  `(${goOn})(${JSON.stringify([url, transport, inWorker, control, closes, String(ignoreAnswers)])})`;
