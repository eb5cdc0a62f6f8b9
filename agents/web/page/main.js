// The frame of the page: header, language, and which part is shown.

import { get, watchConnection } from "/page/api.js";
import { h, recall, remember, replace } from "/page/dom.js";
import { GamePage } from "/page/play.js";
import { ReviewPage } from "/page/review.js";
import { dailyPage, recordsPage, setupPage } from "/page/setup.js";
import { loadWords, refusalText, say } from "/page/words.js";

const LANGUAGES = { es: "Español", pt: "Português", en: "English" };
const PARTS = ["play", "watch", "daily", "review"];

const root = document.getElementById("main");
const banner = document.getElementById("banner");
let session, language, skin, open = null, shownHash = null;

watchConnection((isThere) => {
  banner.hidden = isThere;
  if (!isThere) banner.textContent = language ? say("no_connection") : "…";
});

function partOf(hash) {
  const [part, identifier, at] = hash.replace(/^#/, "").split("/");
  return { part: part || "play", identifier, at: at === undefined ? null : Number(at) };
}

function header() {
  const { part, identifier } = partOf(location.hash);
  const current = part === "game" ? (identifier?.startsWith("daily-") ? "daily" : "play") : part;
  const pick = (label, value, values, texts, onPick) => h("select", {
    "aria-label": label, "data-focus": label, onchange: (event) => onPick(event.target.value),
  }, values.map((one) => h("option", { value: one, selected: one === value }, texts(one))));
  document.getElementById("skip").textContent = say("skip");
  replace(document.getElementById("top"), [
    h("a", { class: "brand", href: "#play" }, "Generala"),
    h("nav", { "aria-label": say("parts") }, PARTS.map((name) => h("a", {
      href: `#${name}`, "data-focus": `part-${name}`, "aria-current": name === current ? "page" : null,
    }, say(name)))),
    h("div", { class: "choices-top" },
      pick(say("language"), language, session.languages, (one) => LANGUAGES[one], (one) => settle(one, skin)),
      pick(say("dice_skin"), skin, session.skins, (one) => say(`skin_${one}`), (one) => settle(language, one))),
  ]);
}

async function settle(newLanguage, newSkin) {
  language = newLanguage;
  skin = newSkin;
  remember("language", language);
  remember("dice", skin);
  await loadWords(language, skin);
  await route();
}

async function show(place) {
  const { part, identifier, at } = partOf(location.hash);
  if (part === "game" && identifier) {
    open = new GamePage(place, session, identifier);
    await open.open();
  } else if (part === "review" && identifier) {
    open = new ReviewPage(place, identifier, Number.isInteger(at) ? at : null);
    await open.open();
  } else if (part === "daily") {
    await dailyPage(place, session);
  } else if (part === "review") {
    await recordsPage(place);
  } else {
    await setupPage(place, session, { people: part !== "watch" });
  }
}

async function route() {
  open?.close();
  open = null;
  header();
  const hash = location.hash;
  const isOther = shownHash !== null && shownHash !== hash;
  shownHash = hash;
  // A part that was left while it was being fetched draws into a place that is no longer shown.
  const place = h("div");
  root.replaceChildren(place);
  try {
    await show(place);
  } catch (error) {
    if (location.hash !== hash) return;
    if (!error.reason) console.error(error);
    replace(place, h("section", { class: "panel" }, h("h1", {}, say("not_shown")), h("p", { class: "fault" }, refusalText(error)), h("a", { class: "button", href: "#play" }, say("play"))));
  }
  if (isOther) {
    // A new part begins at its top, for the eyes as for the keyboard.
    scrollTo(0, 0);
    root.focus({ preventScroll: true });
  }
}

async function start() {
  session = await get("/api/session");
  const own = (navigator.language ?? "en").slice(0, 2);
  const first = session.language ?? (session.languages.includes(own) ? own : "en");
  language = recall("language", first, session.languages);
  skin = recall("dice", session.dice, session.skins);
  await loadWords(language, skin);
  addEventListener("hashchange", route);
  await route();
}

document.getElementById("skip").addEventListener("click", (event) => { event.preventDefault(); root.focus(); });
start();
