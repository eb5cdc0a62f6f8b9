// A game looked at again, decision by decision.

import { get } from "/page/api.js";
import { selectionOf, sheetView, tableView } from "/page/board.js";
import { actionView, basisText, verdictView } from "/page/coach.js";
import { h, replace } from "/page/dom.js";
import { diceRow } from "/page/dice.js";
import { capital, costText, say, seatNames } from "/page/words.js";

const WORST = 8;

export class ReviewPage {
  constructor(root, identifier, at) {
    this.root = root;
    this.identifier = identifier;
    this.path = `/api/games/${encodeURIComponent(identifier)}`;
    this.at = at;
    this.all = false;
    this.wanted = 0;
    this.onKey = (event) => this.key(event);
    document.addEventListener("keydown", this.onKey);
  }

  close() {
    this.closed = true;
    document.removeEventListener("keydown", this.onKey);
  }

  async open() {
    this.game = await get(this.path);
    this.names = seatNames(this.game.seats);
    this.review = await get(`${this.path}/review`);
    const last = Math.max(0, this.review.decisions.length - 1);
    if (this.at === null) {
      // Where most was given away is what one wants to see first.
      const costs = this.review.decisions.map((decision) => decision?.cost ?? 0);
      this.at = costs.length ? Math.max(0, costs.indexOf(Math.max(...costs))) : 0;
    }
    this.at = Math.min(this.at, last);
    this.slider = h("input", {
      type: "range", min: 0, max: last, value: this.at, "aria-label": say("decision"), "data-focus": "slider",
      oninput: (event) => this.turnTo(Number(event.target.value)),
    });
    this.counter = h("output", { class: "counter" });
    this.position = h("div", { class: "game-main" });
    this.side = h("div", { class: "game-side" });
    replace(this.root, h("div", { class: "game review" },
      h("div", { class: "game-head" },
        h("h1", {}, `${say("review")} · ${this.game.variant.name} · ${this.names.join(" – ")}`),
        h("a", { class: "quiet", href: `${this.path}/record`, download: "" }, say("download"))),
      h("div", { class: "game-wide" },
        this.summaryView(),
        this.review.decisions.length ? h("div", { class: "turner panel" },
          h("button", { type: "button", class: "button quiet", "data-focus": "back", "aria-label": say("back"), onclick: () => this.turnTo(this.at - 1) }, "‹"),
          this.slider, this.counter,
          h("button", { type: "button", class: "button quiet", "data-focus": "on", "aria-label": say("on"), onclick: () => this.turnTo(this.at + 1) }, "›")) : null),
      this.position, this.side));
    if (this.review.decisions.length) await this.turnTo(this.at);
  }

  key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey || event.target.closest("input, select, textarea")) return;
    if (event.key === "ArrowLeft") this.turnTo(this.at - 1);
    else if (event.key === "ArrowRight") this.turnTo(this.at + 1);
  }

  async turnTo(at) {
    if (at < 0 || at >= this.review.decisions.length) return;
    this.at = at;
    this.slider.value = at;
    this.counter.textContent = `${at + 1} / ${this.review.decisions.length}`;
    history.replaceState(null, "", `#review/${this.identifier}/${at}`);
    const wanted = ++this.wanted;
    const [before, verdict, after] = await Promise.all([
      get(`${this.path}?at=${at}`), get(`${this.path}/verdict?at=${at}`), get(`${this.path}?at=${at + 1}`)]);
    // Whoever drags the slider asks for many, and wants to see the last.
    if (this.closed || wanted !== this.wanted) return;
    this.before = before;
    this.verdict = verdict;
    this.move = after.log[at];
    this.draw();
  }

  draw() {
    const game = this.before;
    const selection = selectionOf(game, this.move);
    replace(this.position, [
      tableView(game, selection, null, { busy: "" }),
      h("section", { class: "panel coach" }, this.verdict
        ? verdictView(game, this.verdict, { all: this.all, showName: true, onAll: (all) => { this.all = all; this.draw(); } })
        : h("p", { class: "hint" }, say("no_choice"))),
    ]);
    replace(this.side, [sheetView(game, selection, null), this.worstView()]);
  }

  summaryView() {
    const alone = this.game.seats.length === 1;
    return h("section", { class: "panel" }, h("dl", { class: "facts" }, this.names.map((name, seat) => {
      const sum = this.review.seats[seat];
      return h("div", { class: "fact" }, h("dt", {}, name),
        h("dd", {}, costText(sum.total_cost, alone), h("small", {}, say("good_of", { good: sum.num_optimal, count: sum.num_decisions }))));
    })), h("p", { class: "basis" }, alone ? say("regret_points") : say("regret_wins"), " ", basisText(this.game, this.review.is_exact)));
  }

  worstView() {
    const alone = this.game.seats.length === 1;
    const worst = this.review.decisions.map((decision, at) => ({ decision, at }))
      .filter(({ decision }) => decision && !decision.is_optimal)
      .sort((one, other) => other.decision.cost - one.decision.cost).slice(0, WORST);
    return h("section", { class: "panel worst" }, h("h3", {}, say("worst")),
      worst.length ? h("ol", {}, worst.map(({ decision, at }) => h("li", {}, h("button", {
        type: "button", class: at === this.at ? "pick here" : "pick", "data-focus": `worst-${at}`, onclick: () => this.turnTo(at),
      }, h("span", { class: "worst-head" },
        h("strong", {}, this.names[decision.seat]),
        decision.is_playoff ? say("playoff") : say("round_throw", { round: decision.round, throw: decision.throw }),
        h("span", { class: "worst-cost" }, `−${costText(decision.cost, alone)}`)),
      h("span", { class: "worst-move" }, diceRow(decision.dice), " → ", actionView(this.game, decision.did)))))) : h("p", {}, say("no_mistakes")));
  }
}
