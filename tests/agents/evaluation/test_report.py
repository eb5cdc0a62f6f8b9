"""The report: what it says, that it stands alone, and how a browser lays it out."""

from __future__ import annotations

import html
import re
import subprocess
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import pytest

from agents.base import Agent
from agents.evaluation.exact import exact_evaluation, exact_summary
from agents.evaluation.figures import exact_figures, regret_figure
from agents.evaluation.report import MOST_BLUNDERS, MOST_GRAVEST, UNFOLDED_BLUNDERS, render_report
from agents.evaluation.report_text import texts
from agents.evaluation.traces import trace_game
from agents.registry import make_agent
from generala_env.rules.names import Language, word
from generala_env.rules.variants import get_variant
from generala_env.solver.evaluation import ExactEvaluation
from tests.browser import BROWSER, in_browser

PHONE_WIDTH, DESKTOP_WIDTH = 375, 1200
NUM_ATTEMPTS, ATTEMPT_SECONDS = 3, 80
"""A browser starts in a second, but now and then hangs on a busy machine."""
DARK = "--blink-settings=preferredColorScheme=0"
LIGHT = "--blink-settings=preferredColorScheme=1"


@cache
def evaluated(name: str = "turn_greedy") -> tuple[Agent, ExactEvaluation]:
    # Few boxes, so that evaluating takes no time, yet enough to make mistakes on.
    variant = get_variant({"base": "doble", "boxes": "ones sixes escalera poker generala doble_generala"})
    agent = make_agent(name, variant)
    return agent, exact_evaluation(agent, num_blunders=MOST_BLUNDERS)


def page(language: str = "en", name: str = "turn_greedy", **options: str) -> str:
    return render_report(*evaluated(name), language=language, **options)  # type: ignore[arg-type]


class Structure(HTMLParser):
    """Checks that elements nest, and gathers ids, links and the text."""

    VOID = frozenset({"meta", "br", "link", "img", "rect", "circle", "line", "path"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.sources: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(str(value))
            if name in {"src", "href", "xlink:href", "srcset"}:
                self.sources.append(str(value))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass  # closed already

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text.append(data)


def parsed(text: str) -> Structure:
    structure = Structure()
    structure.feed(text)
    structure.close()
    assert structure.open == []
    return structure


@pytest.mark.parametrize("dice", ["standard", "poker"])
@pytest.mark.parametrize("language", list(Language))
def test_the_page_is_whole_and_stands_alone(language: str, dice: str) -> None:
    text = page(language, dice=dice)
    structure = parsed(text)
    assert structure.ids == ["distribution", "regret", "heat-map", "boxes", "blunders", "gravest", "game"]
    assert structure.sources == []
    assert not re.search(r"https?:|@import|url\(|<script|<link", text)
    assert f'<html lang="{language}">' in text
    assert "{" not in "".join(structure.text)  # every placeholder was filled


def test_the_page_shows_the_figures() -> None:
    agent, evaluation = evaluated()
    text = " ".join("".join(parsed(page()).text).split())
    assert f"{100 * evaluation.optimality:.2f} % of the optimum" in text
    assert f"{evaluation.expected_score:,.3f}" in text
    assert f"The parts add up to {evaluation.regret:.3f}" in text
    trace = trace_game(agent)
    assert f"{trace.score:.0f}." in text
    assert evaluation.compiled.variant.fingerprint in text


def test_numbers_are_written_as_in_the_language() -> None:
    _, evaluation = evaluated()
    share = f"{100 * evaluation.optimality:.2f}"
    assert f"{share} %" in page("en")
    assert share.replace(".", ",") + " %" in page("es")


def test_every_text_has_the_same_placeholders_in_each_language() -> None:
    versions = [texts(language) for language in Language]
    for key in versions[0]:
        names = {tuple(sorted(re.findall(r"{(\w+)}", version[key]))) for version in versions}
        assert len(names) == 1, key


def test_optimal_play_has_no_mistakes_to_show() -> None:
    text = page(name="optimal")
    assert "None: every move is optimal." in html.unescape(text)
    assert parsed(text).ids == ["distribution", "regret", "heat-map", "boxes", "blunders", "game"]


def entries(text: str, section: str) -> list[str]:
    """Return the entries of a list of mistakes, as they are read: without what only draws them."""
    found = text.split(f'<section id="{section}">')[1].split("</section>")[0]
    return [entry.split("</li>")[0] for entry in found.split("<li>")[1:]]


@pytest.mark.parametrize("variant", ["ruibal", "clasica", "doble_al_as"])
def test_page_and_json_list_the_same_mistakes_with_the_same_cost(variant: str) -> None:
    agent = make_agent("turn_greedy", variant)
    evaluation = exact_evaluation(agent)
    summary = exact_summary(agent.name, evaluation)
    text = html.unescape(render_report(agent, evaluation))
    for section, shown in (("blunders", MOST_BLUNDERS), ("gravest", MOST_GRAVEST)):
        listed = summary[section][:shown]
        read = entries(text, section)
        assert len(read) == len(listed)
        for entry, blunder in zip(read, listed, strict=True):
            assert f"{blunder['cost']:.4f} a game" in entry
            assert f"loses {blunder['regret']:.2f}" in entry
            assert blunder["cost"] == pytest.approx(blunder["regret"] * blunder["frequency"])


@pytest.mark.parametrize("variant", ["ruibal", "doble", "doble_al_as"])
def test_no_two_mistakes_look_alike(variant: str) -> None:
    agent = make_agent("tips", variant)
    evaluation = exact_evaluation(agent, num_blunders=3_000)
    places = ("dice", "throw", "served", "locked", "open_boxes", "remembered")
    listed = [
        tuple(str(blunder[key]) for key in places)
        for blunder in exact_summary("tips", evaluation, num_blunders=3_000)["blunders"]
    ]
    assert len(set(listed)) == len(listed) == 3_000
    # Without what the rules remember of closed boxes, some would.
    assert len({entry[:-1] for entry in listed}) < len(listed)
    shown = entries(render_report(agent, evaluation), "blunders")
    assert len(set(shown)) == len(shown)


@pytest.mark.parametrize("win", [-300, 0, 12.5, 100_000])
def test_any_price_of_a_win_can_be_drawn(win: float) -> None:
    agent, _ = evaluated()
    text = render_report(agent, exact_evaluation(agent, instant_win=win))
    chart = text.split('<svg class="chart"')[1].split("</svg>")[0]
    assert 3 < chart.count('y="246.0" text-anchor="middle"') < 12
    across = [float(x) for x in re.findall(r"H([0-9.-]+)", chart)]
    assert min(across) > 40
    assert max(across) == pytest.approx(792)
    assert across == sorted(across[: len(across) // 2]) * 2
    assert exact_figures(exact_evaluation(agent, instant_win=win))


def test_every_line_of_the_chart_is_in_its_key() -> None:
    chart = page("es").split('id="distribution"')[1].split("</section>")[0]
    assert chart.count('<line class="mean"') == 2
    key = chart.split('<p class="key">')[1].split("</p>")[0]
    assert "of-agent" in key
    assert "of-optimal" in key
    assert '<span class="of-mean">rayas: las medias</span>' in key


def test_lost_points_have_one_unit_throughout() -> None:
    agent = make_agent("random", evaluated()[0].compiled.variant)
    evaluation = exact_evaluation(agent)
    lost = evaluation.regret_by_box[:-1]
    assert lost.max() > 1  # a thousand thousandths, which would have a separator
    text = render_report(agent, evaluation, language="es")
    shown = re.findall(r"<td style=[^>]+>([^<]+)</td>", text.split('id="heat-map"')[1].split("</section>")[0])
    assert shown == [f"{value:.3f}".replace(".", ",") for value in lost.ravel().tolist()]


def test_what_is_long_is_folded_and_what_is_wide_says_so() -> None:
    text = page()
    assert len(entries(text.split("<details>")[0], "blunders")) == UNFOLDED_BLUNDERS
    assert len(entries(text, "blunders")) > UNFOLDED_BLUNDERS
    for section in ("gravest", "game"):
        assert "<details>" in text.split(f'id="{section}"')[1].split("</section>")[0]
    assert text.count('<div class="panel scroll"') == text.count('<p class="scroll-hint"') == 3


@pytest.mark.parametrize("language", list(Language))
def test_the_heat_map_figure_is_in_one_language(language: Language) -> None:
    _, evaluation = evaluated()
    axes, bar = regret_figure(evaluation, language=language).axes
    say = texts(language)
    assert axes.get_xlabel() == word("round", language)
    assert axes.get_title().startswith(say["heat_map"])
    assert bar.get_ylabel() == say["lost_axis"]


def test_an_agents_name_cannot_break_the_page() -> None:
    agent, evaluation = evaluated()
    name = agent.name
    try:
        agent.name = "<script>alert(1)</script>"
        assert "<script>" not in render_report(agent, evaluation)
    finally:
        agent.name = name


# --- in a browser -----------------------------------------------------------------------------------

MEASURE = """<!DOCTYPE html><title>frame</title>
<iframe id="frame" src="report.html" style="width:{width}px;height:800px;border:0"></iframe>
<pre id="result"></pre>
<script>
window.addEventListener("load", () => {{  // fires once the frame has loaded too
  const frame = document.getElementById("frame");
  const page = frame.contentDocument, view = frame.contentWindow;
  const small = [...page.querySelectorAll("p, td, th, dd, dt, li, span")]
    .filter(item => item.textContent.trim() && item.getClientRects().length)
    .map(item => parseFloat(view.getComputedStyle(item).fontSize));
  const escaped = [...page.querySelectorAll("section, .panel, .facts div, .blunders li")]
    .filter(item => item.getBoundingClientRect().right > {width} + 1).length;
  document.getElementById("result").textContent = [
    page.documentElement.scrollWidth, Math.min(...small), escaped,
    page.querySelectorAll("svg.die").length,
    page.querySelector(".chart .agent").getBBox().width.toFixed(0),
    view.getComputedStyle(page.body).backgroundColor, view.getComputedStyle(page.body).color,
  ].join("|");
}});
</script>"""


def measured(folder: Path, width: int, scheme: str) -> list[str]:
    """Open the report in a frame of that width and return what the browser made of it."""
    assert BROWSER is not None
    (folder / "report.html").write_text(page(), encoding="utf-8")
    frame = folder / "frame.html"
    frame.write_text(MEASURE.format(width=width), encoding="utf-8")
    command = [
        BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync",
        "--disable-background-networking", "--allow-file-access-from-files", scheme,
        "--window-size=1400,900", "--dump-dom",
    ]  # fmt: skip
    for attempt in range(NUM_ATTEMPTS):
        profile = f"--user-data-dir={folder / f'profile{attempt}'}"
        try:
            done = subprocess.run(
                [*command, profile, frame.as_uri()],
                capture_output=True,
                text=True,
                timeout=ATTEMPT_SECONDS,
                check=True,
            )
        except subprocess.TimeoutExpired:
            continue
        found = re.search(r'<pre id="result">([^<]+)</pre>', done.stdout)
        assert found, done.stderr[-2000:]
        return found[1].split("|")
    raise AssertionError(f"the browser did not answer {NUM_ATTEMPTS} times in {ATTEMPT_SECONDS} seconds")


def luminance(colour: str) -> float:
    """Relative luminance of an ``rgb(...)`` colour, as WCAG 2 defines it."""
    parts = [int(number) / 255 for number in re.findall(r"\d+", colour)[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@in_browser
@pytest.mark.parametrize(("width", "scheme"), [(PHONE_WIDTH, DARK), (DESKTOP_WIDTH, LIGHT)])
def test_a_browser_lays_the_page_out(tmp_path: Path, width: int, scheme: str) -> None:
    scroll_width, smallest, escaped, num_dice, chart_width, paper, ink = measured(tmp_path, width, scheme)
    assert int(scroll_width) <= width  # nothing makes the page scroll sideways
    assert float(smallest) >= 11
    assert int(escaped) == 0
    assert int(num_dice) > 50
    assert int(chart_width) > 500  # in units of the drawing, which is 800 wide
    light, dark = sorted((luminance(paper), luminance(ink)), reverse=True)
    assert (light + 0.05) / (dark + 0.05) > 7  # WCAG 2, level AAA
    assert (luminance(paper) < 0.1) == (scheme == DARK)
