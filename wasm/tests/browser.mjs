// Headless Chromium for tests.

import { chromium } from "playwright-core";

const FLAGS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

export function launch() {
  return chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: FLAGS });
}

/** A page of a browser that ends with the test. */
export async function openPage(context, options) {
  const browser = await launch();
  context.after(() => browser.close());
  return browser.newPage(options);
}
