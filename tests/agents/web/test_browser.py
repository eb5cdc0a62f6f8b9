"""The page in a real browser: whole games, every mode, small and large, light and dark."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from agents.games.record import GameRecord
from agents.web.server import Server, Settings
from tests.browser import BROWSER, in_browser

playwright = pytest.importorskip("playwright.sync_api")

pytestmark = in_browser

ARGUMENTS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update",
]  # fmt: skip

PHONE, DESK = (390, 844), (1300, 900)
PATIENCE = 15_000
"""Milliseconds to wait for anything."""

YOURS, OVER = ".game[data-state=yours]", ".game[data-state=over]"
SMALL = "boxes=ones sixes generala"


class Running:
    """A server in a thread, which can be stopped and started again at the same port."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.port = 0
        self.start()

    def start(self) -> None:
        self.socket = socket.create_server(("127.0.0.1", self.port))
        self.port = self.socket.getsockname()[1]
        # Everything is made anew: what the page still knows afterwards was on the disk.
        config = uvicorn.Config(Server(self.settings).app(), log_level="error", timeout_graceful_shutdown=1)
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [self.socket]})
        self.thread.start()

    def stop(self) -> None:
        self.server.should_exit = True
        self.thread.join()
        self.socket.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Running]:
    (tmp_path / "runs").mkdir()
    running = Running(Settings(tmp_path / "games", tmp_path / "runs", tmp_path / "store"))
    yield running
    running.stop()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=BROWSER, args=ARGUMENTS)
        yield browser
        browser.close()


class Visit:
    """One browser with cookies of its own, that must not complain."""

    def __init__(self, chromium: Any, server: Running, size: tuple[int, int] = DESK, **options: Any) -> None:
        width, height = size
        options = {"locale": "en", "reduced_motion": "reduce", **options}
        self.context = chromium.new_context(viewport={"width": width, "height": height}, **options)
        self.context.set_default_timeout(PATIENCE)
        self.server = server
        self.complaints: list[str] = []
        self.page = self.tab()

    def tab(self) -> Any:
        page = self.context.new_page()
        page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.goto(self.server.url)
        page.evaluate("localStorage.setItem('generala.speed', 'instant')")
        return page

    def begin(self, *seats: str, rules: str = SMALL, part: str = "play", variant: str = "ruibal") -> None:
        """Fill in the form and start."""
        page = self.page
        page.click(f"[data-focus=part-{part}]")
        page.wait_for_selector(f"form[data-part={part}]")
        page.click(f"[data-focus=count-{len(seats)}]")
        for index, seat in enumerate(seats):
            page.select_option(f"#seat-{index}", seat)
        page.select_option("#variant", variant)
        if rules:
            page.click("details.field summary")
            page.fill("#overrides", rules)
        page.click("button[type=submit]")
        page.wait_for_selector(".table")

    def finish(self) -> None:
        """Close the first box there is, by clicks, until the game is over."""
        while self.ready():
            self.page.click(".pay >> nth=0")
            self.go()

    def ready(self) -> bool:
        """Wait until a person is to move; false once the game is over."""
        self.page.wait_for_selector(f"{YOURS}, {OVER}")
        return self.page.query_selector(OVER) is None

    def go(self) -> None:
        """Do what is selected, and wait until it has been done."""
        before = self.page.locator(".log li").count()
        self.page.click(".go")
        self.page.wait_for_selector(f".log li >> nth={before}", state="attached")

    def record(self) -> GameRecord:
        """Return what is on the disk of the latest game."""
        files = self.server.settings.games.glob("*/*.jsonl")
        return GameRecord.read(max(files, key=lambda path: path.stat().st_mtime_ns))

    def check(self, width: int) -> None:
        """See that the page is laid out well, and that nothing was complained about."""
        measured = self.page.evaluate(
            """() => {
              const all = [...document.querySelectorAll("body *")];
              const shown = all.filter(item => item.getClientRects().length);
              const texts = shown.filter(item => item.closest("svg") === null && !item.closest(".unseen") &&
                [...item.childNodes].some(node => node.nodeType === 3 && node.textContent.trim()));
              const targets = shown.filter(item => item.matches("button, select, a.button"));
              return {
                wide: document.documentElement.scrollWidth,
                small: Math.min(...texts.map(item => parseFloat(getComputedStyle(item).fontSize))),
                low: Math.min(...targets.map(item => item.getBoundingClientRect().height)),
                cut: shown.filter(item => item.matches(".panel") &&
                  item.getBoundingClientRect().right > innerWidth + 1).length,
                nameless: shown.filter(item => item.matches("button, input, select, textarea") &&
                  !(item.ariaLabel || item.textContent.trim() || item.labels?.length)).length,
                paper: getComputedStyle(document.body).backgroundColor,
                ink: getComputedStyle(document.body).color,
              };
            }"""
        )
        assert measured["wide"] <= width
        assert measured["small"] >= 12
        assert measured["low"] >= 28
        assert measured["cut"] == 0
        assert measured["nameless"] == 0
        paper, ink = (sum(map(int, re.findall(r"\d+", measured[name])[:3])) for name in ("paper", "ink"))
        assert abs(paper - ink) > 500
        self.is_dark = paper < ink
        assert "{" not in self.page.inner_text("body")
        assert self.complaints == []


@contextlib.contextmanager
def visiting(chromium: Any, server: Running, *arguments: Any, **options: Any) -> Iterator[Visit]:
    visit = Visit(chromium, server, *arguments, **options)
    yield visit
    visit.context.close()


def test_a_whole_game_by_clicks_with_the_coach_before_each_choice(chromium: Any, server: Running) -> None:
    with visiting(chromium, server, DESK) as visit:
        page = visit.page
        visit.begin("me", "tips", rules="")
        page.wait_for_selector(YOURS)
        page.click("[data-focus=coach-before]")
        while visit.ready():
            # The coach's best choice is selected by a click on it, and then done.
            page.wait_for_selector(".choices .pick")
            page.click(".choices .pick >> nth=0")
            visit.go()
        visit.check(1300)
        assert not visit.is_dark
        record = visit.record()
        assert record.dealt.is_over
        assert re.search("Winner|Draw", page.inner_text(".status h2"))
        totals = [int(text) for text in page.locator("tfoot td").all_inner_texts()]
        assert totals == list(record.dealt.state.scores)


def test_a_game_of_four_by_touch_on_a_dark_phone(chromium: Any, server: Running) -> None:
    options = {"color_scheme": "dark", "has_touch": True, "is_mobile": True}
    with visiting(chromium, server, PHONE, **options) as visit:
        visit.begin("me", "race", "tips", "me", variant="doble", rules="")
        visit.page.wait_for_selector(YOURS)
        visit.page.tap("[data-focus=die-0]")
        assert visit.page.get_attribute("[data-focus=die-0]", "aria-pressed") == "true"
        visit.page.tap(".go")
        visit.page.wait_for_selector(".log li", state="attached")
        visit.check(390)
        assert visit.is_dark
        mine = next(action for state, action in visit.record().history() if state.current_player in (0, 3))
        assert mine == 1
        boxes = visit.page.locator(".die-button").evaluate_all(
            "items => items.map(item => item.getBoundingClientRect().width)"
        )
        assert min(boxes) > 55


def test_the_keyboard_alone_starts_and_plays_a_game(chromium: Any, server: Running) -> None:
    with visiting(chromium, server) as visit:
        page = visit.page
        page.wait_for_selector("form")

        def tab_to(selector: str) -> None:
            for _ in range(60):
                if page.evaluate(f"document.activeElement.matches({json.dumps(selector)})"):
                    return
                page.keyboard.press("Tab")
            raise AssertionError(f"Tab does not reach {selector}")

        tab_to("[data-focus=count-1]")
        page.keyboard.press("Enter")
        tab_to("button[type=submit]")
        outline = page.evaluate("getComputedStyle(document.activeElement).outlineWidth")
        assert float(outline.removesuffix("px")) >= 2
        page.keyboard.press("Enter")
        page.wait_for_selector(YOURS)
        page.keyboard.press("2")
        assert page.get_attribute("[data-focus=die-1]", "aria-pressed") == "true"
        page.keyboard.press("Escape")
        assert page.get_attribute("[data-focus=die-1]", "aria-pressed") == "false"
        page.keyboard.press("5")
        tab_to(".go")
        page.keyboard.press("Enter")
        page.wait_for_selector(".log li >> nth=0", state="attached")
        # The focus stays on the button for the next throw.
        assert page.evaluate("document.activeElement.dataset.focus") == "go"
        while page.query_selector(OVER) is None:
            before = page.locator(".log li").count()
            tab_to(".pay")
            page.keyboard.press("Enter")
            page.keyboard.press("Enter")
            page.wait_for_selector(f".log li >> nth={before}", state="attached")
        assert visit.record().dealt.is_over
        assert page.inner_text("#live")
        visit.check(1300)


def test_a_reload_and_a_second_tab_show_the_game_as_it_is(chromium: Any, server: Running) -> None:
    with visiting(chromium, server) as visit:
        visit.begin("me", "me")
        visit.page.wait_for_selector(YOURS)
        visit.page.click("[data-focus=die-2]")
        visit.go()
        before = visit.page.inner_text(".table")
        visit.page.reload()
        visit.page.wait_for_selector(YOURS)
        assert visit.page.inner_text(".table") == before
        first, visit.page = visit.page, visit.tab()
        visit.page.goto(first.url)
        visit.page.wait_for_selector(YOURS)
        visit.page.click(".pay >> nth=0")
        visit.go()
        # The other tab hears of it by itself.
        first.wait_for_selector(".log li >> nth=1", state="attached")
        visit.check(1300)


def test_a_lost_connection_and_a_restarted_server_lose_nothing(chromium: Any, server: Running) -> None:
    with visiting(chromium, server) as visit:
        page = visit.page
        visit.begin("me", "tips")
        page.wait_for_selector(YOURS)
        known = len(visit.record().actions)
        server.stop()
        page.click(".pay >> nth=0")
        page.click(".go")
        page.wait_for_selector("#banner:not([hidden])")
        server.start()
        page.wait_for_selector("#banner", state="hidden")
        page.wait_for_selector(f".log li >> nth={known}", state="attached")
        visit.finish()
        assert visit.record().dealt.is_over
        # What a browser writes of a server that is away is its own; nothing else may be there.
        assert all("ERR_CONNECTION" in text or "Failed to load" in text for text in visit.complaints)


def test_the_coach_says_after_a_choice_what_it_cost_and_why(chromium: Any, server: Running) -> None:
    with visiting(chromium, server, PHONE) as visit:
        visit.begin("me", rules="", variant="clasica")
        visit.page.wait_for_selector(YOURS)
        visit.page.click("[data-focus=coach-after]")
        visit.page.click(".pay-nothing >> nth=0")
        visit.go()
        verdict = visit.page.inner_text(".verdict")
        assert re.search(r"Costs [\d.]+ points", verdict)
        assert re.search("more points this turn|fewer points this turn|more later", verdict)
        visit.page.click(".verdict details summary")
        visit.page.wait_for_selector(".verdict .choices tbody tr >> nth=9")
        visit.check(390)


def test_two_agents_are_watched_by_steps_and_then_reviewed(chromium: Any, server: Running) -> None:
    with visiting(chromium, server, PHONE) as visit:
        page = visit.page
        visit.begin("tips", "race", part="watch", rules="boxes=ones sixes full generala")
        page.click("[data-focus=step]")
        page.wait_for_selector(".verdict")
        assert len(visit.record().actions) == 1
        visit.check(390)
        page.click("[data-focus=run]")
        page.wait_for_selector(".over")
        assert page.locator(".totals .fact").count() == 2
        page.click(".over a")
        page.wait_for_selector(".review .verdict")
        # The decision that cost most is shown first, and is part of the address.
        assert re.search(r"#review/game-\w+/\d+", page.url)
        page.keyboard.press("ArrowRight")
        visit.check(390)


def test_a_saved_record_is_opened_from_a_file(chromium: Any, server: Running, tmp_path: Path) -> None:
    with visiting(chromium, server) as visit:
        visit.begin("me", rules=SMALL)
        visit.finish()
        saved = tmp_path / "saved.jsonl"
        saved.write_bytes(next(server.settings.games.glob("*/*.jsonl")).read_bytes())
        (tmp_path / "other.jsonl").write_text("no record\n", encoding="utf-8")
        page = visit.page
        page.click("[data-focus=part-review]")
        page.wait_for_selector("form[data-part=review]")
        page.set_input_files("#file", tmp_path / "other.jsonl")
        page.click("button[type=submit]")
        assert "JSON" in page.inner_text(".fault:not([hidden])")
        page.set_input_files("#file", saved)
        page.click("button[type=submit]")
        page.wait_for_selector(".worst")
        assert page.url.split("#")[1].startswith("review/record-")
        costs = page.locator(".worst-cost").all_inner_texts()
        assert costs
        page.click(".worst .pick >> nth=0")
        visit.complaints = [text for text in visit.complaints if "400" not in text]
        visit.check(1300)


def test_the_deal_of_the_day_is_played_and_scored(chromium: Any, server: Running) -> None:
    with visiting(chromium, server, DESK, color_scheme="dark") as visit:
        page = visit.page
        page.click("[data-focus=part-daily]")
        page.wait_for_selector("form[data-part=daily]")
        page.click("details.field summary")
        page.fill("#overrides", SMALL)
        page.click("button[type=submit]")
        page.wait_for_selector(YOURS)
        assert page.query_selector("[data-focus=coach-before]") is None
        visit.finish()
        shown = "items => items.map(item => item.firstChild.textContent)"
        values = [
            float(text.replace("\N{MINUS SIGN}", "-").replace(",", ""))
            for text in page.locator(".over dd").evaluate_all(shown)
        ]
        facts = dict(zip(page.locator(".over dt").all_inner_texts(), values, strict=True))
        assert facts["Your score"] == sum(player.score for player in visit.record().dealt.state.players)
        expected = facts["Expected optimum"] + facts["Your mistakes"] + facts["Your luck"]
        assert facts["Your score"] == pytest.approx(expected, abs=0.2)
        visit.check(1300)
        assert visit.is_dark


@pytest.mark.parametrize(("language", "start"), [("es", "Empezar"), ("pt", "Começar"), ("en", "Start")])
def test_the_page_speaks_the_browsers_language_and_can_be_told_another(
    chromium: Any, server: Running, language: str, start: str
) -> None:
    with visiting(chromium, server, PHONE, locale=language) as visit:
        page = visit.page
        page.wait_for_selector(f"button:has-text('{start}')")
        assert page.get_attribute("html", "lang") == language
        page.select_option(".choices-top select >> nth=1", "poker")
        page.wait_for_selector("form")
        visit.begin("me", rules="")
        page.wait_for_selector(".die-label")
        visit.check(390)
        page.select_option(".choices-top select >> nth=0", "pt" if language == "es" else "es")
        page.wait_for_selector(f"html:not([lang={language}])")
        page.wait_for_selector(YOURS)
        visit.check(390)
