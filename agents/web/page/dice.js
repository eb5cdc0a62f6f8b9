// Dice as drawings.

import { faceLabel, isPoker } from "/page/words.js";

const SVG = "http://www.w3.org/2000/svg";
const LOW = 26, MIDDLE = 50, HIGH = 74;
const CORNERS = { nw: [LOW, LOW], ne: [HIGH, LOW], w: [LOW, MIDDLE], c: [MIDDLE, MIDDLE], e: [HIGH, MIDDLE], sw: [LOW, HIGH], se: [HIGH, HIGH] };
const PIPS = { 1: "c", 2: "nw se", 3: "nw c se", 4: "nw ne sw se", 5: "nw ne c sw se", 6: "nw ne w e sw se" };

function node(tag, attributes) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

/** Draw one face; what it shows is said by whatever holds it. */
export function die(face, kind = "") {
  const svg = node("svg", { viewBox: "0 0 100 100", class: `die ${kind}`, "aria-hidden": "true", focusable: "false" });
  svg.append(node("rect", { class: "die-body", x: 3, y: 3, width: 94, height: 94, rx: 20 }));
  if (isPoker()) {
    const label = node("text", { class: "die-label", x: 50, y: 67, "text-anchor": "middle" });
    label.textContent = faceLabel(face);
    svg.append(label);
  } else {
    for (const place of PIPS[face].split(" ")) {
      svg.append(node("circle", { class: "die-pip", cx: CORNERS[place][0], cy: CORNERS[place][1], r: 9.5 }));
    }
  }
  return svg;
}

/** Draw several small dice in a row. */
export function diceRow(dice) {
  const row = document.createElement("span");
  row.className = "dice-row";
  row.setAttribute("role", "img");
  row.setAttribute("aria-label", dice.map(faceLabel).join(" "));
  row.append(...dice.map((face) => die(face, "die-small")));
  return row;
}
