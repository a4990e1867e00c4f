/** Elements of the page, by id and class. */

export function element<T extends HTMLElement>(id: string, kind: new () => T): T {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) {
    throw new Error(`the page has no ${kind.name} #${id}`);
  }
  return found;
}

/** Creates a table cell. `label` is the name of its column, which narrow windows show before the cell. */
export function labelled(label: string, className: string, text: string): HTMLElement {
  const cell = make("td", className, text);
  cell.dataset["label"] = label;
  return cell;
}

/** Creates an element with a class and text. */
export function make(tag: string, className: string, text: string): HTMLElement {
  const created = document.createElement(tag);
  created.className = className;
  created.textContent = text;
  return created;
}
