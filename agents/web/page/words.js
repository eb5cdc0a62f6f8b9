// Names, sentences and numbers in the language of the page.

import { get } from "/page/api.js";

let words = { language: "en", texts: {}, boxes: {}, faces: [] };

export async function loadWords(language, skin) {
  words = { ...(await get(`/api/words?lang=${language}&dice=${skin}`)), skin };
  document.documentElement.lang = language;
}

/** A sentence with its values filled in. */
export function say(key, values = {}) {
  const text = words.texts[key];
  if (text === undefined) throw new Error(`no words for ${key}`);
  return text.replace(/{(\w+)}/g, (_, name) => values[name]);
}

export const knows = (key) => key in words.texts;
export const capital = (text) => text.charAt(0).toLocaleUpperCase(words.language) + text.slice(1);
export const boxName = (box) => words.boxes[box];
export const faceLabel = (face) => words.faces[face - 1];
export const isPoker = () => words.skin === "poker";
export const facesText = (dice) => dice.map(faceLabel).join(" ");

export function number(value, digits = 1) {
  const rounded = Number(value.toFixed(digits));
  return new Intl.NumberFormat(words.language, { minimumFractionDigits: digits, maximumFractionDigits: digits })
    .format(rounded === 0 ? 0 : rounded);
}

export const percent = (share, digits = 1) => `${number(100 * share, digits)} %`;
export const dateText = (iso) =>
  new Intl.DateTimeFormat(words.language, { dateStyle: "long", timeZone: "UTC" }).format(new Date(`${iso}T00:00:00Z`));
export const timeText = (seconds) =>
  new Intl.DateTimeFormat(words.language, { dateStyle: "medium", timeStyle: "short" }).format(new Date(1000 * seconds));

/** A loss: points when alone, otherwise percent of the chance of winning. */
export const costText = (cost, alone) => (alone ? say("points_cost", { value: number(cost, 2) }) : percent(cost, 2));

/** What an action does. */
export function moveText(game, action) {
  if ("keep" in action) {
    return action.keep.length ? `${say("keep")} ${facesText(action.keep)}` : say("throw_all");
  }
  const what = boxName(game.variant.boxes[action.box]);
  const points = action.points + action.bonus;
  return points ? `${say("close")} ${what} (${points})` : `${say("strike")} ${what}`;
}

/** What the players are called; a person without a name is "you", or a player with a number where there are several. */
export function seatNames(seats) {
  const unnamed = seats.filter((seat) => !seat.name).length === 1 ? "you" : "player";
  const plain = seats.map((seat) => seat.name || say(unnamed));
  return plain.map((name, seat) => {
    const same = plain.filter((other) => other === name).length;
    return same > 1 ? `${name} ${plain.slice(0, seat + 1).filter((other) => other === name).length}` : name;
  });
}

/** Why a game was refused, in the language of the page where there are words for it. */
export const refusalText = (error) =>
  error.reason !== undefined && knows(`refused_${error.reason}`) ? say(`refused_${error.reason}`, { message: error.message }) : error.message;
