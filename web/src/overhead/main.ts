/**
 * The overhead page: a table that follows the inputs. The URL stores the inputs, so that a link reproduces the table.
 */

import "../echo/style.css";
import "./style.css";

import { element, labelled, make } from "../dom.js";
import { cost, layouts } from "./cost.js";
import type { Layout, Messages } from "./cost.js";

const form = element("form", HTMLFormElement);
const table = element("table", HTMLTableElement);
const status = element("status", HTMLParagraphElement);
const FIELDS = ["size", "count", "rate", "mtu"] as const;
const inputs = Object.fromEntries(FIELDS.map((name) => [name, element(name, HTMLInputElement)]));

const NUMBERS = new Intl.NumberFormat("en");

/** Creates a bar that shows the percentage of payload. */
function bar(share: number): HTMLElement {
  const cell = labelled("Payload and overhead", "bar", "");
  const track = make("div", "track", "");
  const payload = make("div", "payload", "");
  payload.style.width = `${(100 * share).toFixed(2)}%`;
  track.append(payload);
  cell.append(track);
  return cell;
}

function row(layout: Layout, messages: Messages, rate: number): HTMLTableRowElement {
  const { datagrams, bytes } = cost(layout, messages);
  const payload = messages.size * messages.count;
  const created = document.createElement("tr");
  Object.assign(created.dataset, { format: layout.format, mode: layout.mode, datagrams, bytes, rate: bytes * rate });
  const head = make("th", "", layout.mode);
  head.setAttribute("scope", "row");
  created.append(
    head,
    labelled("Datagrams", "number", NUMBERS.format(datagrams)),
    labelled("Bytes", "number", NUMBERS.format(bytes)),
    bar(payload / bytes),
    labelled("Overhead", "number", `${((100 * (bytes - payload)) / payload).toFixed(1)} %`),
    labelled("Bytes per second", "number", NUMBERS.format(bytes * rate)),
  );
  return created;
}

/** Groups the rows of a format under its name. */
function group(format: string, rows: HTMLTableRowElement[]): HTMLTableSectionElement {
  const body = document.createElement("tbody");
  const title = document.createElement("tr");
  const head = make("th", "format", format);
  head.setAttribute("scope", "rowgroup");
  head.setAttribute("colspan", "6");
  title.append(head);
  body.append(title, ...rows);
  return body;
}

function value(name: (typeof FIELDS)[number]): number {
  return inputs[name]?.valueAsNumber ?? NaN;
}

function show(): void {
  const invalid = FIELDS.map((name) => inputs[name]).find((input) => input?.checkValidity() === false);
  table.hidden = invalid !== undefined;
  if (invalid) {
    const label = invalid.labels?.[0]?.textContent?.trim() ?? invalid.id;
    status.textContent = `${label}: a whole number from ${NUMBERS.format(Number(invalid.min))} to ${NUMBERS.format(Number(invalid.max))}.`;
    return;
  }
  const messages = { size: value("size"), count: value("count"), mtu: value("mtu") };
  const formats = [...new Set(layouts.map((layout) => layout.format))];
  const groups = formats.map((format) => {
    const modes = layouts.filter((layout) => layout.format === format);
    return group(format, modes.map((layout) => row(layout, messages, value("rate"))));
  });
  for (const body of [...table.tBodies]) {
    body.remove();
  }
  table.append(...groups);
  const payload = NUMBERS.format(messages.size * messages.count * value("rate"));
  status.textContent = `${payload} bytes of payload per second.`;
  history.replaceState(null, "", `#${new URLSearchParams(FIELDS.map((name) => [name, String(value(name))]))}`);
}

/** Restores the inputs from the URL. */
function restore(): void {
  const entered = new URLSearchParams(location.hash.slice(1));
  for (const name of FIELDS) {
    const input = inputs[name];
    if (input && entered.has(name)) {
      input.value = entered.get(name) ?? "";
    }
  }
}

form.addEventListener("input", show);
form.addEventListener("submit", (event) => event.preventDefault());
restore();
show();
