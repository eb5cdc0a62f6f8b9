// What is chosen before a game: rules, seats, a day, a saved record; and the games there are.

import { get, newKey, post } from "/page/api.js";
import { h, recall, remember, replace } from "/page/dom.js";
import { capital, dateText, knows, refusalText, say, seatNames, timeText } from "/page/words.js";

const PATH = "\u0000path";

function rulesFacts(variant) {
  const facts = [say("fact_boxes", { count: variant.boxes.length }), say("fact_generala", { points: variant.generala_points })];
  if (variant.doble !== "none") facts.push(say(`fact_doble_${variant.doble}`, { points: variant.doble_points }));
  facts.push(say("fact_served", { points: variant.served_bonus }));
  facts.push(say(`fact_wins_${variant.served_generala_wins}`));
  if (variant.kept_dice === "locked") facts.push(say("fact_locked"));
  if (variant.order === "forced") facts.push(say("fact_forced"));
  return facts.join(" · ");
}

const agentText = (name) => (knows(`agent_${name}`) ? `${name} – ${say(`agent_${name}`)}` : name);

/** A form for the rules: a preset, and fields that are changed. */
class RulesForm {
  constructor(session, onChange) {
    this.session = session;
    this.name = (session.overrides.length ? session.variant : null) ?? recall("variant", session.variant, session.variants.map((variant) => variant.name));
    this.onChange = onChange;
    this.facts = h("p", { class: "note" });
    this.select = h("select", { id: "variant", onchange: () => this.changed() },
      session.variants.map((variant) => h("option", { value: variant.name, selected: variant.name === this.name }, variant.name)));
    this.overrides = h("textarea", { id: "overrides", rows: 2, placeholder: "generala_points=50", value: session.overrides.join("\n"), spellcheck: "false", autocapitalize: "off" });
    this.view = [
      h("div", { class: "field" }, h("label", { for: "variant" }, capital(say("variant"))), this.select, this.facts),
      h("details", { class: "field", open: session.overrides.length > 0 }, h("summary", {}, say("change_rules")),
        h("label", { for: "overrides" }, say("overrides_label")), this.overrides,
        h("p", { class: "note" }, say("fields", { names: session.fields.join(", ") }))),
    ];
    this.changed();
  }

  get variant() { return this.session.variants.find((variant) => variant.name === this.name); }

  changed() {
    this.name = this.select.value;
    remember("variant", this.name);
    this.facts.textContent = rulesFacts(this.variant);
    this.onChange?.();
  }

  message() {
    const overrides = this.overrides.value.split("\n").map((line) => line.trim()).filter(Boolean);
    return { variant: this.name, overrides };
  }
}

/** A form for who plays. */
class SeatsForm {
  constructor(session, { people }) {
    this.session = session;
    this.people = people;
    this.seats = people ? ["me", "race"] : ["race", "tips"];
    this.view = h("fieldset", { class: "field" });
    this.draw();
  }

  choices(count) {
    const known = this.session.agents[count];
    return [
      ...(this.people ? [["me", say("a_person")]] : []),
      ...known.map((name) => [name, agentText(name)]),
      ...this.session.runs.map((name) => [name, name]),
      [PATH, say("a_run")],
    ];
  }

  setCount(count) {
    while (this.seats.length < count) this.seats.push("solo_optimal");
    this.seats.length = count;
    const names = this.choices(count).map(([value]) => value);
    this.seats = this.seats.map((seat) => (names.includes(seat) || !this.session.agents[this.session.max_seats].includes(seat) ? seat : count === 1 ? "optimal" : "solo_optimal"));
    this.draw();
  }

  draw() {
    const count = this.seats.length;
    const numbers = Array.from({ length: this.session.max_seats }, (_, index) => index + 1);
    replace(this.view, [
      h("legend", {}, say("who_plays")),
      h("div", { class: "segments", role: "group", "aria-label": say("how_many") }, numbers.map((number_) => h("button", {
        type: "button", "aria-pressed": String(number_ === count), "data-focus": `count-${number_}`, onclick: () => this.setCount(number_),
      }, number_ === 1 ? say("alone") : String(number_)))),
      this.seats.map((seat, index) => this.seatView(seat, index, count)),
    ]);
  }

  seatView(seat, index, count) {
    const choices = this.choices(count);
    const person = seat === "me" || seat.startsWith("me:");
    const known = person || choices.some(([value]) => value === seat);
    const label = say("seat", { number: index + 1 });
    return h("div", { class: "seat" },
      h("label", { for: `seat-${index}` }, label),
      h("select", { id: `seat-${index}`, "data-focus": `seat-${index}`, onchange: (event) => { this.seats[index] = event.target.value === PATH ? "" : event.target.value; this.draw(); } },
        choices.map(([value, text]) => h("option", { value, selected: person ? value === "me" : known ? value === seat : value === PATH }, text))),
      person ? h("input", { type: "text", maxlength: 30, placeholder: say("name_optional"), "aria-label": `${label}: ${say("name_optional")}`, value: seat.slice(3), oninput: (event) => { this.seats[index] = event.target.value.trim() ? `me:${event.target.value.trim()}` : "me"; } }) : null,
      known ? null : h("input", { type: "text", maxlength: 200, placeholder: "runs/NAME", "aria-label": `${label}: ${say("a_run")}`, value: seat, oninput: (event) => { this.seats[index] = event.target.value.trim(); } }));
  }
}

async function begin(form, fault, path, message, hash) {
  const button = form.querySelector("button[type=submit]");
  button.disabled = true;
  fault.hidden = true;
  try {
    location.hash = hash(await post(path, message));
  } catch (error) {
    fault.textContent = refusalText(error);
    fault.hidden = false;
  } finally {
    button.disabled = false;
  }
}

const faultView = () => h("p", { class: "fault", role: "alert", hidden: true });

function gameLine(entry) {
  if (entry.damaged) return h("li", { class: "entry" }, h("div", {}, h("strong", {}, entry.id), h("p", { class: "note" }, say("damaged", { message: entry.damaged }))));
  const names = seatNames(entry.seats).join(" – ");
  const title = entry.is_daily ? `${say("daily")} · ${dateText(entry.id.slice(6, 16))}` : names;
  const state = entry.is_over ? entry.scores.join(" : ") : say("round_of", { round: entry.round, rounds: entry.num_rounds });
  return h("li", { class: "entry" },
    h("div", {}, h("strong", {}, title), h("p", { class: "note" }, `${entry.variant} · ${state} · ${timeText(entry.changed)}`)),
    h("div", { class: "buttons" },
      entry.is_over ? null : h("a", { class: "button", href: `#game/${entry.id}` }, say("go_on")),
      entry.is_daily && !entry.is_over ? null : h("a", { class: "button quiet", href: `#review/${entry.id}` }, say("review_it")),
      entry.is_over ? h("a", { class: "button quiet", href: `#game/${entry.id}` }, say("result")) : null));
}

async function gamesView(filter, heading) {
  const entries = (await get("/api/games")).filter(filter);
  return h("section", { class: "panel" }, h("h2", {}, heading),
    entries.length ? h("ul", { class: "entries" }, entries.map(gameLine)) : h("p", { class: "note" }, say("no_games")));
}

const isWatched = (entry) => entry.seats !== undefined && !entry.seats.some((seat) => seat.is_person);

/** Begin a game against agents or people, or between agents. */
export async function setupPage(root, session, { people }) {
  const rules = new RulesForm(session);
  const seats = new SeatsForm(session, { people });
  const fault = faultView();
  const seed = h("input", { id: "seed", type: "text", inputmode: "numeric", pattern: "[0-9]{1,15}", placeholder: say("drawn") });
  rules.view[1].append(h("label", { for: "seed" }, say("seed_label")), seed);
  const form = h("form", {
    class: "panel form",
    "data-part": people ? "play" : "watch",
    onsubmit: (event) => {
      event.preventDefault();
      const message = { key: newKey(), ...rules.message(), seats: seats.seats, ...(seed.value ? { seed: Number(seed.value) } : {}) };
      begin(form, fault, "/api/games", message, (game) => `#game/${game.id}`);
    },
  },
  h("h1", {}, people ? say("new_game") : say("new_watch")),
  seats.view, rules.view, fault,
  h("button", { type: "submit", class: "go" }, people ? say("start") : say("start_watch")));
  replace(root, h("div", { class: "pair" }, form, await gamesView((entry) => isWatched(entry) !== people && !entry.is_daily, say("your_games"))));
}

/** The deal of a day. */
export async function dailyPage(root, session) {
  const rules = new RulesForm(session);
  const fault = faultView();
  const day = h("input", { id: "day", type: "date", max: session.today, value: session.today, required: true });
  const form = h("form", {
    class: "panel form",
    "data-part": "daily",
    onsubmit: (event) => {
      event.preventDefault();
      begin(form, fault, "/api/daily", { ...rules.message(), day: day.value }, (game) => `#game/${game.id}`);
    },
  },
  h("h1", {}, say("daily")),
  h("p", {}, say("daily_text")),
  h("div", { class: "field" }, h("label", { for: "day" }, say("day")), day),
  rules.view, fault,
  h("button", { type: "submit", class: "go" }, say("start_daily")));
  replace(root, h("div", { class: "pair" }, form, await gamesView((entry) => entry.is_daily, say("your_deals"))));
}

/** A saved game to look at again. */
export async function recordsPage(root) {
  const fault = faultView();
  const file = h("input", { id: "file", type: "file", accept: ".jsonl,application/jsonl", required: true });
  const form = h("form", {
    class: "panel form",
    "data-part": "review",
    onsubmit: async (event) => {
      event.preventDefault();
      const text = await file.files[0].text();
      begin(form, fault, "/api/records", { key: newKey(), text }, (game) => `#review/${game.id}`);
    },
  },
  h("h1", {}, say("review")),
  h("p", {}, say("review_text")),
  h("div", { class: "field" }, h("label", { for: "file" }, say("file")), file),
  fault,
  h("button", { type: "submit", class: "go" }, say("review_it")));
  replace(root, h("div", { class: "pair" }, form, await gamesView((entry) => entry.damaged || !entry.is_daily || entry.is_over, say("your_games"))));
}

