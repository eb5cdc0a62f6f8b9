// What choices are worth, what a mistake cost, and why.

import { h } from "/page/dom.js";
import { diceRow } from "/page/dice.js";
import { boxName, capital, costText, moveText, number, percent, say, seatNames } from "/page/words.js";

const SHOWN = 6, LIKELY = 3, WORTH_SAYING = 0.005;

/** An action as dice that stay, or as the box it closes. */
export function actionView(game, action) {
  if (!("keep" in action)) {
    const points = action.points + action.bonus;
    return h("span", { class: "act" }, h("span", { class: "act-box" }, boxName(game.variant.boxes[action.box])),
      h("span", { class: points ? "act-points" : "act-points act-strike" }, points ? `+${points}` : say("strike")));
  }
  if (!action.keep.length) return h("span", { class: "act" }, capital(say("throw_all")));
  return h("span", { class: "act" }, diceRow(action.keep), h("span", { class: "act-throw" }, say("throw_rest", { count: 5 - action.keep.length })));
}

/** A table of choices; `pick` makes each of them a button. */
export function choicesView(game, choices, { all, onAll, pick = null, did = null }) {
  const alone = game.seats.length === 1;
  const shown = all ? choices : choices.slice(0, SHOWN);
  if (did && !shown.some((choice) => choice.action === did.action)) shown.push(choices.find((choice) => choice.action === did.action));
  const rows = shown.map((choice) => h("tr", { class: did && choice.action === did.action ? "did" : null },
    h("td", {}, pick
      ? h("button", { type: "button", class: "pick", "data-focus": `pick-${choice.action}`, "aria-label": capital(moveText(game, choice)), onclick: () => pick(choice) }, actionView(game, choice))
      : actionView(game, choice)),
    alone ? null : h("td", { class: "num" }, percent(choice.win, 1)),
    h("td", { class: "num" }, number(choice.points_to_come, 1)),
    h("td", { class: "num cost" }, choice.cost < 1e-9 ? h("span", { class: "good" }, "✓") : `−${costText(choice.cost, alone)}`)));
  return [
    h("table", { class: "choices" },
      h("thead", {}, h("tr", {},
        h("th", { scope: "col" }, capital(say("choice"))),
        alone ? null : h("th", { scope: "col" }, capital(say("win"))),
        h("th", { scope: "col" }, capital(say("to_come"))),
        h("th", { scope: "col" }, capital(say("cost"))))),
      h("tbody", {}, rows)),
    choices.length > SHOWN
      ? h("button", { type: "button", class: "quiet", "data-focus": "all-choices", "aria-expanded": String(all), onclick: () => onAll(!all) },
        all ? say("fewer_choices") : say("all_choices", { count: choices.length }))
      : null,
  ];
}

/** On what the numbers rest. */
export const basisText = (game, isExact) =>
  game.seats.length === 1 ? say("by_points") : isExact ? say("by_duel") : say("by_race");

function endingsText(game, prospect) {
  const parts = prospect.endings.slice(0, LIKELY).map((ending) => {
    const name = boxName(game.variant.boxes[ending.box]);
    const text = [];
    if (ending.scored >= WORTH_SAYING) text.push(`${name} ${percent(ending.scored, 0)}`);
    if (ending.struck >= WORTH_SAYING) text.push(`${say("strike")} ${name} ${percent(ending.struck, 0)}`);
    return text;
  }).flat();
  if (prospect.wins >= WORTH_SAYING) parts.push(`${say("instant_win")} ${percent(prospect.wins, 0)}`);
  return parts.join(" · ");
}

/** Why the best choice is better, in a sentence. */
function whyText(game, verdict) {
  const { did, best, did_prospect: mine, best_prospect: theirs } = verdict;
  if (game.seats.length > 1) {
    const more = best.points_to_come - did.points_to_come;
    return more >= 0 ? say("why_more_points", { points: number(more) }) : say("why_fewer_points", { points: number(-more) });
  }
  const now = theirs.points - mine.points;
  const later = best.points_to_come - theirs.points - (did.points_to_come - mine.points);
  const values = { now: number(Math.abs(now)), later: number(Math.abs(later)) };
  if (now >= 0 && later >= 0) return say("why_both", values);
  return now >= 0 ? say("why_now", values) : say("why_later", values);
}

function outlookRow(game, label, choice, prospect) {
  const alone = game.seats.length === 1;
  const figures = [];
  if (!alone) figures.push(say("wins_figure", { value: percent(choice.win, 1) }));
  if (prospect) figures.push(say("turn_figure", { value: number(prospect.points) }));
  if (prospect && alone) figures.push(say("later_figure", { value: number(choice.points_to_come - prospect.points) }));
  return h("div", { class: "outlook" },
    h("dt", {}, label),
    h("dd", {}, actionView(game, choice),
      h("p", { class: "figures" }, figures.join(" · ")),
      prospect && "keep" in choice ? h("p", { class: "endings" }, `${say("turn_ends")}: ${endingsText(game, prospect)}`) : null));
}

/** What a decision cost and why. */
export function verdictView(game, verdict, { all, onAll, showName = false }) {
  const alone = game.seats.length === 1;
  const name = seatNames(game.seats)[verdict.seat];
  const headline = verdict.is_optimal ? say("was_best") : say("it_costs", { cost: costText(verdict.cost, alone) });
  return h("div", { class: verdict.is_optimal ? "verdict fine" : "verdict poor" },
    h("h3", {}, h("span", { class: "mark", "aria-hidden": "true" }, verdict.is_optimal ? "✓" : "−"), showName ? `${name}: ${headline}` : headline),
    verdict.is_optimal ? null : h("p", { class: "why" }, whyText(game, verdict)),
    h("dl", {},
      outlookRow(game, capital(say("did")), verdict.did, verdict.did_prospect),
      verdict.is_optimal ? null : outlookRow(game, capital(say("best")), verdict.best, verdict.best_prospect)),
    h("details", { class: "more", open: all, ontoggle: (event) => { if (event.target.open !== all) onAll(event.target.open); } },
      h("summary", { "data-focus": "all-choices" }, say("all_choices", { count: verdict.choices.length })),
      all ? choicesView(game, verdict.choices, { all: true, onAll, did: verdict.did })[0] : null),
    h("p", { class: "basis" }, basisText(game, verdict.is_exact)));
}
