// The built overhead page in Chromium, compared with `rakwire overhead`.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { test } from "node:test";

import { openPage } from "./browser.mjs";
import { printsJson, startRelay } from "./support.mjs";

const PAGE = fileURLToPath(new URL("../dist", import.meta.url));
const LAYOUTS = new URL("../src/overhead/layouts.json", import.meta.url);

async function open(t, hash = "") {
  const relay = await startRelay(t, { nobody: "127.0.0.1:1" }, "--serve", PAGE);
  const page = await openPage(t);
  await page.goto(`http://${relay.address}/overhead.html${hash}`);
  await page.locator("tr[data-mode]").first().waitFor();
  return page;
}

function tool({ size, count, rate, mtu }) {
  return printsJson("overhead", String(size), "--count", String(count), "--rate", String(rate), "--mtu", String(mtu), "--json");
}

async function enter(page, values) {
  for (const [name, value] of Object.entries(values)) {
    await page.getByTestId(name).fill(String(value));
  }
}

test("the page and the tool have the same layouts", () => {
  const printed = tool({ size: 1, count: 1, rate: 1, mtu: 1_492 }).rows.map(({ format, mode, layout }) => ({ format, mode, ...layout }));
  assert.deepEqual(JSON.parse(readFileSync(LAYOUTS, "utf8")), printed, "update layouts.json from `rakwire overhead 1 --json`");
});

test("the page shows the tool's numbers and stores them in its URL", async (t) => {
  const page = await open(t);
  const all = [
    { size: 1, count: 1, rate: 1, mtu: 1_492 },
    { size: 100, count: 20, rate: 60, mtu: 1_200 },
    { size: 504, count: 3, rate: 10, mtu: 576 },
    { size: 1_432, count: 2, rate: 30, mtu: 1_492 },
    { size: 1_433, count: 1, rate: 30, mtu: 1_492 },
    { size: 16_777_216, count: 7, rate: 2, mtu: 1_400 },
  ];
  for (const messages of all) {
    await enter(page, messages);
    const rows = await page.locator("tr[data-mode]").evaluateAll((rows) => rows.map((row) => ({ ...row.dataset })));
    const expected = tool(messages).rows.map(({ format, mode, datagrams, bytes, bytes_per_second: rate }) => {
      return { format, mode, datagrams: String(datagrams), bytes: String(bytes), rate: String(rate) };
    });
    assert.deepEqual(rows, expected, JSON.stringify(messages));
    assert.equal(new URL(page.url()).hash, `#${new URLSearchParams(messages)}`);
  }
  const again = await open(t, "#size=100&count=20&rate=60&mtu=1200");
  const first = await again.locator("tr[data-mode]").first().getAttribute("data-bytes");
  assert.equal(first, String(tool(all[1]).rows[0].bytes));
});

test("an input out of range replaces the table with an error", async (t) => {
  const page = await open(t);
  for (const [name, value, error] of [
    ["size", "0", /^Bytes per message: a whole number from 1 to 16,777,216\.$/],
    ["mtu", "575", /^MTU .*: a whole number from 576 to 1,492\.$/],
    ["count", "1.5", /^Messages sent together/],
    ["rate", "", /^Times per second/],
  ]) {
    const before = await page.getByTestId(name).inputValue();
    await enter(page, { [name]: value });
    assert.match(await page.getByTestId("status").textContent(), error);
    assert.ok(await page.getByTestId("table").isHidden());
    await enter(page, { [name]: before });
    assert.ok(await page.getByTestId("table").isVisible());
  }
});
