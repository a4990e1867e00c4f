// What the tests press and read on the page.

export const byId = (page, id) => page.getByTestId(id);

/** Presses connect and waits until the page says what became of it. */
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

/** The page's state and its words. */
export async function pageState(page) {
  const state = await byId(page, "page").getAttribute("data-state");
  return { state, words: await byId(page, "status").textContent() };
}

/** Waits until this many messages of the log came back, and gives them in the order in which they were sent. */
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
