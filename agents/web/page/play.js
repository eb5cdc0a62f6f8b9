// One game, played or watched.

import { get, newKey, post } from "/page/api.js";
import { freshSelection, intended, logView, selectionOf, sheetView, tableView } from "/page/board.js";
import { basisText, choicesView, verdictView } from "/page/coach.js";
import { announce, h, recall, remember, replace, sleep } from "/page/dom.js";
import { capital, costText, dateText, facesText, moveText, number, refusalText, say, seatNames } from "/page/words.js";

const COACH = ["off", "before", "after"];
const SPEEDS = { slow: 2400, normal: 1100, fast: 350, instant: 0 };

export class GamePage {
  constructor(root, session, identifier) {
    this.root = root;
    this.session = session;
    this.path = `/api/games/${encodeURIComponent(identifier)}`;
    this.coach = recall("coach", "off", COACH);
    this.speed = recall("speed", "normal", Object.keys(SPEEDS));
    this.game = null;
    this.shown = null; // what an agent has just done, on the position in which it did it
    this.advice = null;
    this.verdict = null;
    this.totals = null;
    this.fault = "";
    this.all = false;
    this.logOpen = false;
    this.running = false;
    this.busy = false;
    this.closed = false;
    this.channel = new BroadcastChannel("generala");
    this.channel.onmessage = ({ data }) => { if (data.id === this.game?.id && data.at > this.game.at) this.refresh(); };
    this.onKey = (event) => this.key(event);
    this.onSight = () => { if (document.visibilityState === "visible") this.refresh(); };
    document.addEventListener("keydown", this.onKey);
    document.addEventListener("visibilitychange", this.onSight);
  }

  close() {
    this.closed = true;
    this.channel.close();
    document.removeEventListener("keydown", this.onKey);
    document.removeEventListener("visibilitychange", this.onSight);
  }

  async open() {
    this.show(await get(this.path));
    if (this.isWatched && this.game.at) await this.sum();
    this.go();
  }

  get isWatched() { return !this.game.seats.some((seat) => seat.is_person); }
  get isMine() { return !this.game.is_over && this.game.seats[this.game.current_player].is_person; }
  get state() { return this.game.is_over ? "over" : this.busy || this.shown ? "busy" : this.isMine ? "yours" : "resting"; }
  get pace() { return SPEEDS[this.speed]; }
  get talks() { return !this.game.is_daily; }

  /** Take over a position of the server. */
  show(game) {
    const isNew = this.game === null || game.at !== this.game.at;
    this.game = game;
    this.shown = null;
    if (isNew) {
      this.advice = null;
      this.selection = freshSelection(game);
    }
    this.draw();
  }

  /** Another tab, or a look at this page after a while: see whether anything has happened. */
  async refresh() {
    if (this.busy || this.closed || this.game === null) return;
    const at = this.game.at;
    const game = await get(this.path);
    if (this.busy || this.closed || this.game.at !== at || game.at === at) return;
    this.verdict = null;
    this.show(game);
    if (this.isWatched) await this.sum();
    this.go();
  }

  async sum() {
    this.totals = (await get(`${this.path}/review`)).seats;
    this.draw();
  }

  /** Go on until a person is to choose. */
  async go() {
    try {
      while (!this.closed && !this.busy && !this.game.is_over && !this.isMine && (this.running || !this.isWatched)) {
        await this.step();
      }
      if (this.closed || this.busy) return;
      if (this.game.is_over) this.running = false;
      if (this.isMine) {
        announce(say("thrown", { throw: this.game.throw, dice: facesText(this.game.dice) }));
        await this.advise();
      }
      this.draw();
    } catch (error) {
      await this.failed(error);
    }
  }

  async advise() {
    if (this.coach !== "before" || !this.talks || !this.isMine || this.advice) return;
    const at = this.game.at;
    const advice = await get(`${this.path}/advice?at=${at}`);
    if (this.game.at === at) this.advice = advice;
    this.draw();
  }

  /** Let an agent take one decision, and show first what it does and then what came of it. */
  async step() {
    this.busy = true;
    try {
      const before = this.game;
      const { game, verdict } = await post(`${this.path}/step`, { at: before.at, judge: this.isWatched });
      if (this.closed) return;
      const move = game.log[before.at];
      this.channel.postMessage({ id: game.id, at: game.at });
      const pace = this.pace;
      announce(`${seatNames(game.seats)[move.seat]}: ${moveText(game, move)}`);
      if (this.isWatched) {
        this.verdict = verdict;
        this.add(move.seat, verdict);
      }
      if (pace) {
        this.shown = move;
        this.selection = selectionOf(before, move);
        this.draw();
        await sleep(pace * 0.55);
      }
      if (this.closed) return;
      this.show(game);
      if (pace) await sleep(pace * 0.45);
    } finally {
      this.busy = false;
    }
  }

  add(seat, verdict) {
    this.totals ??= this.game.seats.map(() => ({ num_decisions: 0, num_optimal: 0, total_cost: 0 }));
    if (!verdict) return;
    const total = this.totals[seat];
    total.num_decisions += 1;
    total.num_optimal += verdict.is_optimal ? 1 : 0;
    total.total_cost += verdict.cost;
  }

  async take(action) {
    if (this.busy || !this.isMine) return;
    this.busy = true;
    this.fault = "";
    this.draw();
    try {
      const judge = this.coach === "after" && this.talks;
      const { game, verdict } = await post(`${this.path}/take`, { at: this.game.at, action, judge });
      if (this.closed) return;
      this.verdict = verdict;
      this.all = false;
      this.channel.postMessage({ id: game.id, at: game.at });
      this.show(game);
    } catch (error) {
      this.busy = false;
      await this.failed(error);
    } finally {
      this.busy = false;
    }
    this.go();
  }

  async failed(error) {
    if (this.closed) return;
    if (error.reason === "stale") {
      this.show(await get(this.path));
      return;
    }
    this.running = false;
    this.fault = refusalText(error);
    this.draw();
  }

  key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey || event.target.closest("input, select, textarea")) return;
    if (!this.isMine || this.busy) return;
    const place = "12345".indexOf(event.key);
    if (event.key.length === 1 && place >= 0) this.toggle(place);
    else if (event.key === "Escape") { this.selection = { kept: this.game.dice.map(() => false), box: null }; this.draw(); }
    else if (event.key === "Enter" && event.target === document.body) this.confirm();
    else return;
    event.preventDefault();
  }

  toggle(place) {
    if (this.busy || this.game.throw === this.game.num_throws) return;
    const kept = [...this.selection.kept];
    kept[place] = !kept[place];
    this.selection = { kept, box: null };
    this.draw();
  }

  choose(box) {
    if (this.busy) return undefined;
    if (this.selection.box === box) return this.confirm();
    this.selection = { kept: this.game.dice.map(() => false), box };
    this.draw();
    return undefined;
  }

  confirm() {
    const move = intended(this.game, this.selection);
    if (!move.why) this.take(move.action);
  }

  // --- drawing --------------------------------------------------------------------------------------

  draw() {
    if (this.closed) return;
    const game = this.game;
    const act = this.isMine && !this.shown
      ? { isReady: !this.busy, toggle: (place) => this.toggle(place), choose: (box) => this.choose(box), go: (action) => this.take(action) }
      : null;
    const busy = this.isWatched ? "" : say("thinking");
    replace(this.root, h("div", { class: "game", "data-state": this.state },
      h("div", { class: "game-head" },
        h("h1", {}, this.title()),
        h("a", { class: "quiet", href: `${this.path}/record`, download: "" }, say("download"))),
      h("div", { class: "game-main" },
        this.shown ? this.shownView() : null,
        tableView(game, this.selection, act, { busy }),
        this.fault ? h("p", { class: "fault", role: "alert" }, this.fault) : null,
        game.is_over ? this.overView() : null,
        this.isWatched && !game.is_over ? this.watchView() : null,
        this.totals ? this.totalsView() : null,
        this.coachView()),
      h("div", { class: "game-side" },
        sheetView(game, this.selection, act),
        logView(game, this.logOpen, (open) => { this.logOpen = open; }),
        this.isWatched ? null : h("details", { class: "panel keys" }, h("summary", { "data-focus": "keys" }, say("keys")), h("p", {}, say("keys_text"))))),
    "go");
  }

  title() {
    const game = this.game;
    if (game.is_daily) return say("daily_title", { day: dateText(game.id.slice(6, 16)), variant: game.variant.name });
    return `${game.variant.name} · ${seatNames(game.seats).join(" – ")}`;
  }

  shownView() {
    const move = this.shown;
    return h("p", { class: "shown" }, h("strong", {}, seatNames(this.game.seats)[move.seat]), ` ${moveText(this.game, move)}`);
  }

  overView() {
    const game = this.game;
    return h("section", { class: "panel over" },
      game.at === 0 ? h("p", {}, capital(say("first_throw_won"))) : null,
      game.daily ? this.dailyView(game.daily) : null,
      h("div", { class: "buttons" },
        game.is_daily ? h("a", { class: "button", href: "#daily" }, say("daily")) : h("button", { type: "button", class: "button", "data-focus": "again", onclick: () => this.again() }, say("again")),
        game.at ? h("a", { class: "button quiet", href: `#review/${game.id}` }, say("review_it")) : null));
  }

  async again() {
    try {
      const { id } = await post(`${this.path}/again`, { key: newKey() });
      location.hash = `#game/${id}`;
    } catch (error) {
      await this.failed(error);
    }
  }

  dailyView(result) {
    const row = (label, value, note = null) => h("div", { class: "fact" }, h("dt", {}, label), h("dd", {}, value, note ? h("small", {}, note) : null));
    const signed = (value) => (value >= 0 ? `+${number(value)}` : number(value).replace("-", "−"));
    return h("dl", { class: "facts" },
      row(say("daily_score"), number(result.score, 0)),
      row(say("daily_optimal"), number(result.optimal_score, 0), say("daily_optimal_note")),
      row(say("daily_expected"), number(result.expected), say("daily_expected_note")),
      row(say("daily_regret"), `−${number(result.regret)}`, say("daily_regret_note", { good: result.num_optimal, count: result.num_decisions })),
      row(say("daily_luck"), signed(result.luck), say("daily_luck_note")));
  }

  watchView() {
    return h("section", { class: "panel watch", "aria-label": say("watch") },
      h("div", { class: "buttons" },
        h("button", { type: "button", class: "button", "data-focus": "run", onclick: () => this.run(!this.running) }, this.running ? say("pause") : say("run")),
        h("button", { type: "button", class: "button quiet", "data-focus": "step", "aria-disabled": this.running || this.busy ? "true" : null, onclick: () => this.once() }, say("one_step")),
        this.speedView()));
  }

  run(running) {
    this.running = running;
    this.draw();
    this.go();
  }

  async once() {
    if (this.running || this.busy || this.game.is_over) return;
    try {
      await this.step();
    } catch (error) {
      await this.failed(error);
    }
    this.draw();
  }

  speedView() {
    return h("label", { class: "speed" }, h("span", {}, say("speed")), h("select", {
      "data-focus": "speed",
      onchange: (event) => { this.speed = event.target.value; remember("speed", this.speed); },
    }, Object.keys(SPEEDS).map((speed) => h("option", { value: speed, selected: speed === this.speed }, say(`speed_${speed}`)))));
  }

  totalsView() {
    const alone = this.game.seats.length === 1;
    return h("section", { class: "panel totals", "aria-label": say("regret_so_far") },
      h("h3", {}, say("regret_so_far")),
      h("dl", { class: "facts" }, seatNames(this.game.seats).map((name, seat) => {
        const total = this.totals[seat];
        return h("div", { class: "fact" }, h("dt", {}, name),
          h("dd", {}, costText(total.total_cost, alone), h("small", {}, say("good_of", { good: total.num_optimal, count: total.num_decisions }))));
      })));
  }

  coachView() {
    if (this.isWatched) {
      return this.verdict ? h("section", { class: "panel coach" }, verdictView(this.game, this.verdict, this.showing(true))) : null;
    }
    if (!this.talks) return this.game.is_over ? null : h("p", { class: "hint" }, say("daily_quiet"));
    if (this.game.is_over && !this.verdict) return null;
    return h("section", { class: this.coach === "off" ? "panel coach coach-off" : "panel coach", "aria-label": say("coach") },
      h("div", { class: "coach-head" },
        h("h3", {}, say("coach")),
        h("div", { class: "segments", role: "group", "aria-label": say("coach") }, COACH.map((mode) => h("button", {
          type: "button",
          "data-focus": `coach-${mode}`,
          "aria-pressed": String(mode === this.coach),
          onclick: () => this.setCoach(mode),
        }, say(`coach_${mode}`)))),
        this.game.seats.some((seat) => !seat.is_person) ? this.speedView() : null),
      this.coach === "before" && this.advice && this.isMine ? [
        choicesView(this.game, this.advice.choices, { ...this.showing(), pick: (choice) => { this.selection = selectionOf(this.game, choice); this.draw(); } }),
        h("p", { class: "basis" }, basisText(this.game, this.advice.is_exact)),
      ] : null,
      this.coach === "after" ? (this.verdict ? verdictView(this.game, this.verdict, this.showing()) : h("p", { class: "hint" }, say("coach_after_hint"))) : null,
      this.coach === "off" ? h("p", { class: "hint" }, say("coach_off_hint")) : null);
  }

  showing(showName = false) {
    return { all: this.all, showName, onAll: (all) => { this.all = all; this.draw(); } };
  }

  setCoach(mode) {
    this.coach = mode;
    remember("coach", mode);
    this.verdict = null;
    this.draw();
    this.advise().catch((error) => this.failed(error));
  }
}
