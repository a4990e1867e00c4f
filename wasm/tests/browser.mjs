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

/** Flags for WebGL without a graphics card. */
export const SOFTWARE_WEBGL = ["--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist"];

export function launch(moreFlags = []) {
  return chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: [...FLAGS, ...moreFlags] });
}

/** A page in a browser that is closed at the end of the test. */
export async function openPage(context, options) {
  const browser = await launch();
  context.after(() => browser.close());
  return browser.newPage(options);
}
