// Helpers for the echo page.

import { UNANSWERED } from "./unanswered.mjs";

export const byId = (page, id) => page.getByTestId(id);

/** Clicks the button Connect and waits for the result. Retries if the server did not answer in time. */
export async function connectPage(page, { target, protocol } = {}) {
  if (target !== undefined) {
    await byId(page, "target").fill(target);
  }
  if (protocol !== undefined) {
    await byId(page, "protocol").selectOption(protocol);
  }
  for (let attempts = 3; ; attempts--) {
    await byId(page, "connect").click();
    await page.waitForFunction(() => !["empty", "connecting"].includes(document.body.dataset.state));
    const found = await pageState(page);
    if (attempts === 1 || !UNANSWERED.test(found.text)) {
      return found;
    }
  }
}

/** Returns the state of the page and its text. */
export async function pageState(page) {
  const state = await byId(page, "page").getAttribute("data-state");
  return { state, text: await byId(page, "status").textContent() };
}

/** Waits until this many messages were echoed, and returns them in the order in which they were sent. */
export async function echoed(page, count) {
  const selector = '[data-testid="entry"][data-outcome="echoed"]';
  await page.waitForFunction(
    ([query, wanted]) => document.querySelectorAll(query).length >= wanted,
    [selector, count],
  );
  const entries = await page.locator(selector).evaluateAll((items) =>
    items.map(({ dataset, textContent }) => ({
      order: Number(dataset.order),
      roundTripMs: Number(dataset.roundTripMs),
      text: textContent,
    })),
  );
  return entries.reverse();
}
