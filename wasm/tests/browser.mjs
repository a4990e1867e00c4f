// Headless Chromium for tests.

import { chromium } from "playwright-core";

const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** The time limit for starting a browser, which is slow on a busy machine. */
const START_MS = 90_000;
const ACTION_MS = 60_000;

/** Flags for WebGL without a GPU. */
export const SOFTWARE_WEBGL = ["--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist"];

/** Launches headless Chromium. If `display` is given, shows the browser with its permission prompts on that display. */
export function launch(moreFlags = [], display = undefined, ignoreDefaultArgs = undefined) {
  const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
  const where = display === undefined ? ["--headless"] : [];
  const options = { headless: display === undefined, env: { ...process.env, ...(display && { DISPLAY: display }) } };
  return chromium.launch({ executablePath, args: [...where, ...FLAGS, ...moreFlags], timeout: START_MS, ...options, ignoreDefaultArgs });
}

/** Opens a page in a browser that is closed at the end of the test. */
export async function openPage(context, options, moreFlags) {
  const browser = await launch(moreFlags);
  context.after(() => browser.close());
  const page = await browser.newPage(options);
  page.setDefaultTimeout(ACTION_MS);
  return page;
}
