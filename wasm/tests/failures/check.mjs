// Makes the attempts of the failure table in a runtime, and checks their outcomes.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { appendFileSync } from "node:fs";
import { createServer } from "node:http";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { startEndpoints } from "./endpoints.mjs";
import { MARGIN_MS } from "./table.mjs";

const RUN = fileURLToPath(new URL("run.mjs", import.meta.url));

/**
 * Checks that every row has the expected outcome and did not exceed its deadline by more than {@link MARGIN_MS}. If
 * `RAKWIRE_FAILURES` names a file, appends the rows to it.
 */
export function check(runtime, rows, least = 51) {
  if (process.env.RAKWIRE_FAILURES) {
    appendFileSync(process.env.RAKWIRE_FAILURES, rows.map((row) => `${JSON.stringify({ runtime, ...row })}\n`).join(""));
  }
  assert.ok(rows.length >= least);
  const [seen, expected] = ["seen", "expected"].map((side) => Object.fromEntries(rows.map((row) => [row.what, row[side]])));
  assert.deepEqual(seen, expected);
  const late = rows.filter(({ ms, deadlineMs }) => !(ms <= deadlineMs + MARGIN_MS));
  assert.deepEqual(late, []);
}

/**
 * Starts the endpoints of `endpoints.mjs`, and a control server. The path of a request to it names an endpoint and the
 * change to its network path.
 */
export async function startControlled(t) {
  const { endpoints, control } = await startEndpoints(t);
  const server = createServer(async ({ url }, response) => {
    await control[url.slice(1)]();
    response.writeHead(200, { "access-control-allow-origin": "*" }).end();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  return { endpoints, control: `http://127.0.0.1:${server.address().port}/` };
}

/** Makes the attempts of the table with a program, such as `node` or `deno run`. */
export async function checkProgram(t, runtime, [program, ...args], { needsWebSocket = false } = {}) {
  const settings = JSON.stringify({ ...(await startControlled(t)), needsWebSocket });
  const { stdout } = await promisify(execFile)(program, [...args, RUN, settings], { maxBuffer: 1 << 24 });
  check(runtime, JSON.parse(stdout.trim().split("\n").at(-1)));
}
