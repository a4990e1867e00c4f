/** The elements of the page, by id and kind. */

export function element<T extends HTMLElement>(id: string, kind: new () => T): T {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) {
    throw new Error(`the page has no ${kind.name} #${id}`);
  }
  return found;
}

/** A new element with a class and text. */
export function make(tag: string, className: string, words: string): HTMLElement {
  const made = document.createElement(tag);
  made.className = className;
  made.textContent = words;
  return made;
}
