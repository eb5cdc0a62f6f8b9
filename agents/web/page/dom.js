// Making and replacing elements.

/**
 * Make an element. Attributes that are functions listen (`onclick`), `vars` sets CSS variables,
 * `null`, `undefined` and `false` leave an attribute out; children may be nested in arrays.
 */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (name === "vars") for (const [key, to] of Object.entries(value)) element.style.setProperty(key, to);
    else if (name === "value" || name === "checked" || name === "selected") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/**
 * Put new children into an element and give the focus back to what stands in the place of the element
 * that had it: the one with the same `data-focus`, or else the one named `otherwise`.
 */
export function replace(root, children, otherwise = null) {
  const active = document.activeElement;
  const had = root.contains(active) && active !== root;
  const key = had ? active.dataset.focus : null;
  root.replaceChildren(...[children].flat(Infinity).filter(Boolean));
  if (!had) return;
  const find = (name) => name && root.querySelector(`[data-focus="${CSS.escape(name)}"]`);
  (find(key) ?? find(otherwise))?.focus({ preventScroll: true });
}

/** Say something to whoever listens instead of looking. */
export function announce(text) {
  document.getElementById("live").textContent = text;
}

/** Remember a choice of this browser; private windows may forbid it. */
export function remember(key, value) {
  try {
    localStorage.setItem(`generala.${key}`, value);
  } catch { /* then it is forgotten */ }
}

export function recall(key, otherwise, allowed = null) {
  let value = null;
  try {
    value = localStorage.getItem(`generala.${key}`);
  } catch { /* as if nothing had been kept */ }
  return value === null || (allowed && !allowed.includes(value)) ? otherwise : value;
}

export const sleep = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));
