// The table: what is going on, the dice, what can be done, and everybody's sheet.

import { h } from "/page/dom.js";
import { die } from "/page/dice.js";
import { boxName, capital, faceLabel, facesText, moveText, say, seatNames } from "/page/words.js";

const maskOf = (chosen) => chosen.reduce((mask, is, place) => mask | (is ? 1 << place : 0), 0);

/** Nothing chosen but what was kept before, which most often is kept again. */
export const freshSelection = (game) => ({ kept: game.throw < game.num_throws ? [...game.kept] : game.dice.map(() => false), box: null });

/** What the selection would do: an action with its id, or why it does nothing. */
export function intended(game, selection) {
  if (selection.box !== null) return game.closings.find((closing) => closing.box === selection.box);
  if (game.throw === game.num_throws) return { why: say("choose_box") };
  const mask = maskOf(selection.kept);
  if (selection.kept.every(Boolean)) return { why: say("choose_box_or_throw") };
  if (!game.keeps[mask]) return { why: capital(say("locked_dice")) };
  return { action: mask, mask, keep: game.dice.filter((_, place) => selection.kept[place]) };
}

/** The selection that an action stands for. */
export function selectionOf(game, action) {
  if ("keep" in action) return { kept: game.dice.map((_, place) => Boolean(action.mask & (1 << place))), box: null };
  return { kept: game.dice.map(() => false), box: action.box };
}

function statusText(game) {
  if (game.is_over) {
    return capital(game.decided_by === "instant_win" ? say("instant_win") : game.decided_by === "playoff" ? `${say("game_over")}, ${say("playoff")}` : say("game_over"));
  }
  const stage = game.is_playoff ? capital(say("playoff")) : say("round_of", { round: game.round, rounds: game.num_rounds });
  return `${stage} · ${say("throw_of", { throw: game.throw, throws: game.num_throws })}`;
}

function resultText(game) {
  if (game.seats.length === 1) return say("over_alone", { points: game.scores[0] });
  const names = seatNames(game.seats);
  const winners = game.winners.map((seat) => names[seat]).join(", ");
  return game.winners.length > 1 ? say("over_draw", { names: winners }) : say("over_winner", { name: winners });
}

function whoText(game) {
  if (game.is_over) return resultText(game);
  const seat = game.seats[game.current_player];
  const name = seatNames(game.seats)[game.current_player];
  return seat.is_person && !seat.name && game.seats.filter((other) => other.is_person).length === 1
    ? say("your_turn")
    : say("turn_of", { name });
}

function diceView(game, selection, act) {
  return h("div", { class: "dice", role: "group", "aria-label": capital(say("dice")) }, game.dice.map((face, place) => {
    const kept = selection.kept[place];
    const label = say("die_label", { place: place + 1, face: faceLabel(face) });
    return h("button", {
      type: "button",
      class: "die-button",
      "data-focus": `die-${place}`,
      "aria-pressed": String(kept),
      "aria-label": label,
      "aria-disabled": act ? null : "true",
      onclick: () => act?.toggle(place),
    }, die(face), h("span", { class: "die-note", "aria-hidden": "true" }, kept ? say("kept_one") : act ? String(place + 1) : ""));
  }));
}

function goView(game, selection, act) {
  const move = intended(game, selection);
  const can = act.isReady && !move.why;
  return h("div", { class: "go-row" }, h("button", {
    type: "button",
    class: "go",
    "data-focus": "go",
    "aria-disabled": can ? null : "true",
    onclick: () => can && act.go(move.action),
  }, move.why ?? capital(moveText(game, move))));
}

/** Dice, status and the button that does what is selected. */
export function tableView(game, selection, act, { busy = "" } = {}) {
  return h("section", { class: "panel table", "aria-label": say("table") },
    h("div", { class: "status" },
      h("h2", {}, whoText(game)),
      h("p", {}, statusText(game), game.is_served ? h("span", { class: "tag" }, say("served")) : null)),
    game.dice.length ? diceView(game, selection, act) : null,
    game.is_over ? null : act ? goView(game, selection, act) : h("p", { class: "waiting" }, busy));
}

function cell(game, seat, box, selection, act) {
  const written = game.sheets[seat][box];
  if (written !== null) return h("td", { class: written ? "written" : "written struck" }, written ? String(written) : h("span", { "aria-label": say("struck") }, "✕"));
  const closing = seat === game.current_player && !game.is_over && game.closings.find((one) => one.box === box);
  if (!closing) return h("td", { class: "open" });
  const pays = closing.points + closing.bonus;
  const chosen = selection.box === box;
  if (!act) return h("td", { class: chosen ? "pays chosen" : "pays" }, pays ? String(pays) : "–");
  return h("td", { class: "pays" }, h("button", {
    type: "button",
    class: pays ? "pay" : "pay pay-nothing",
    "data-focus": `box-${box}`,
    "aria-pressed": String(chosen),
    "aria-label": capital(moveText(game, closing)),
    onclick: () => act.choose(box),
  }, pays ? `+${pays}` : "✕"));
}

/** Everybody's sheet. */
export function sheetView(game, selection, act) {
  const names = seatNames(game.seats);
  const heading = names.map((name, seat) => h("th", {
    scope: "col",
    class: [seat === game.current_player && !game.is_over ? "playing" : "", names.length > 1 && game.winners.includes(seat) ? "won" : ""].join(" ").trim(),
    title: name,
  }, h("span", { class: "name" }, name)));
  const rows = game.variant.boxes.map((box, index) => h("tr", {},
    h("th", { scope: "row" }, boxName(box)),
    names.map((_, seat) => cell(game, seat, index, selection, act))));
  if (game.variant.has_bonus) {
    rows.push(h("tr", {}, h("th", { scope: "row" }, say("doble_bonus")), game.bonuses.map((bonus) => h("td", { class: "written" }, bonus ? String(bonus) : ""))));
  }
  return h("section", { class: `panel sheet seats-${names.length}`, "aria-label": capital(say("card")) },
    h("table", {},
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, h("span", { class: "unseen" }, capital(say("box")))), heading)),
      h("tbody", {}, rows),
      h("tfoot", {}, h("tr", {}, h("th", { scope: "row" }, capital(say("total"))), game.scores.map((score) => h("td", {}, String(score)))))));
}

/** What happened, the latest first. */
export function logView(game, open, onToggle) {
  const names = seatNames(game.seats);
  const entries = [...game.log].reverse().map((entry) => h("li", {},
    h("strong", {}, names[entry.seat]), ` ${facesText(entry.dice)} → ${moveText(game, entry)}`));
  return h("details", { class: "panel log", open, ontoggle: (event) => onToggle(event.target.open) },
    h("summary", { "data-focus": "log" }, say("what_happened")),
    entries.length ? h("ol", { reversed: true }, entries) : h("p", {}, say("nothing_yet")));
}
