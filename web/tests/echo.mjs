// Helpers to use the echo page.

export const byId = (page, id) => page.getByTestId(id);

/** Clicks connect and waits for the result. */
export async function connectPage(page, { target, protocol } = {}) {
  if (target !== undefined) {
    await byId(page, "target").fill(target);
  }
  if (protocol !== undefined) {
    await byId(page, "protocol").selectOption(protocol);
  }
  await byId(page, "connect").click();
  await page.waitForFunction(() => !["empty", "connecting"].includes(document.body.dataset.state), null, { timeout: 20_000 });
  return pageState(page);
}

/** The state of the page and its text. */
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
    { timeout: 20_000 },
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
