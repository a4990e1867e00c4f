// Measures the time to connect to a relay, each time with a new browser profile. Prints one line of JSON. `cargo xtask
// bench transports` runs it over a simulated path with latency.
//
// Usage: connect.mjs RELAY TRANSPORT RUNS [PORT]. PORT replaces the UDP port in the relay's announcement, to simulate a
// network that blocks UDP.

import { withBrowser } from "./pages.mjs";

/** Runs in the page: connects once and measures the time. */
async function measure([url, transport]) {
  const { connect } = await import("/dist/index.js");
  const began = performance.now();
  const connection = await connect(url, { target: "game", protocol: "raknet", timeoutMs: 60_000, transport });
  const took = performance.now() - began;
  const by = connection.transport;
  // Frees the slot at the game server, which would otherwise keep the connection until its timeout.
  await connection.close();
  return { ms: took, transport: by };
}

async function connectOnce(browser, url, relay, transport, port) {
  const context = await browser.newContext();
  try {
    const page = await context.newPage();
    page.setDefaultTimeout(120_000);
    if (port !== undefined) {
      await page.route("**/transports", async (route) => {
        const response = await route.fetch();
        const said = await response.json();
        said.webtransport.port = port;
        said.webrtc.port = port;
        await route.fulfill({ response, json: said });
      });
    }
    await page.goto(url);
    return await page.evaluate(measure, [`ws://${relay}/ws`, transport]);
  } finally {
    await context.close();
  }
}

async function main([relay, transport, runs, port]) {
  await withBrowser(async (browser, url) => {
    const connections = [];
    while (connections.length < Number(runs)) {
      connections.push(await connectOnce(browser, url, relay, transport, port && Number(port)));
    }
    console.log(JSON.stringify(connections));
  });
}

await main(process.argv.slice(2)).catch((error) => console.log(`failed: ${String(error).replaceAll("\n", " ")}`));
