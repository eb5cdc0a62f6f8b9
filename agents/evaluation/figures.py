"""Figures of exact evaluations and learning curves, drawn with matplotlib and without a display."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from agents.evaluation.exact import optimal_evaluation
from agents.evaluation.report_text import number, texts
from generala_env.files import replacing
from generala_env.rules.names import DiceSkin, Language, box_name, word
from generala_env.solver.evaluation import ExactEvaluation

NEGLIGIBLE_SHARE: Final = 1e-4
"""The axis of a distribution ends where bins hold less than this share of the games."""

STEEP_PART: Final = 0.1
"""The axis of learning curves is fitted to what comes after this share of the way."""

STEEP_TIMES: Final = 2.0
"""The beginning leaves the picture if the axis would be this many times longer with it."""

FORMATS: Final = ("png", "svg")

LABEL_WIDTH: Final = 32
"""Letters after which a label goes on in the next line."""


class Style(NamedTuple):
    """How one of several things is drawn: told apart in grey by its lightness and its dashes."""

    colour: str
    dashes: str | tuple[int, tuple[int, ...]]
    hatch: str


STYLES: Final = (
    Style("#16324f", "-", ""),
    Style("#c1502e", "--", "///"),
    Style("#5aa17f", "-.", "..."),
    Style("#d9a441", ":", "xxx"),
    Style("#7b5ea7", (0, (5, 1, 1, 1, 1, 1)), "\\\\\\"),
    Style("#8a8a8a", (0, (1, 1)), "+++"),
)

REFERENCE_STYLES: Final = ((0, (6, 2)), (0, (2, 2)), (0, (4, 1, 1, 1)))


def style_of(number: int) -> Style:
    """Return the style of the thing with that number; they repeat."""
    return STYLES[number % len(STYLES)]


def wrapped(label: str, width: int = LABEL_WIDTH) -> str:
    """Break a long label into lines of about so many letters."""
    return textwrap.fill(label, width, break_long_words=False)


def save_figure(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write a figure as PNG and as SVG; equal figures make equal files.

    Args:
        figure: What is written.
        folder: Where; made if it is not there.
        name: The files' name, without the ending.

    Returns:
        The files.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    with mpl.rc_context({"svg.hashsalt": "generala-env"}):
        for suffix in FORMATS:
            path = folder / f"{name}.{suffix}"
            with replacing(path) as temporary:
                figure.savefig(
                    temporary,
                    format=suffix,
                    dpi=144,
                    metadata={"Date": None} if suffix == "svg" else {"Software": None},
                )
            written.append(path)
    return written


def score_distribution_figure(
    evaluations: Mapping[str, ExactEvaluation], *, language: Language = Language.EN
) -> Figure:
    """Draw the distributions of final scores against that of optimal play.

    Args:
        evaluations: Of the same game, by the agents' names.
        language: The language of what is written.
    """
    say = texts(language)
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.add_subplot()
    first = next(iter(evaluations.values()))
    shown = {say["optimum"]: optimal_evaluation(first), **evaluations}
    width = 5.0
    top = max(float(result.scores.max()) for result in shown.values())
    # Only a penalty for winning makes scores below 0.
    bottom = min(0.0, *(float(result.scores.min()) for result in shown.values()))
    edges = np.append(np.arange(bottom, top + width, width), top + 2 * width)
    last = 0.0
    for number_of, (label, result) in enumerate(shown.items()):
        shares, _ = np.histogram(result.scores, edges, weights=result.score_probabilities)
        last = max(last, float(edges[1:][shares > NEGLIGIBLE_SHARE].max(initial=0.0)))
        style = style_of(number_of - 1)
        legend = say["mean_of"].format(
            agent=label,
            mean=number(result.expected_score, language),
            std=number(result.std_score, language, 1),
        )
        axes.stairs(
            100 * shares,
            edges,
            fill=number_of == 0,
            color="0.8" if number_of == 0 else style.colour,
            linestyle="-" if number_of == 0 else style.dashes,
            linewidth=1.6,
            label=wrapped(legend, 48),
        )
    axes.set_xlim(bottom, last)
    axes.set_xlabel(say["score_axis"])
    axes.set_ylabel(say["games_axis"])
    axes.set_title(f"{first.compiled.variant.name}: {say['distribution'].lower()}")
    figure.legend(loc="outside lower center", ncols=2, frameon=False, handlelength=3.5)
    return figure


def regret_bars_figure(
    evaluations: Mapping[str, ExactEvaluation],
    *,
    language: Language = Language.EN,
    skin: DiceSkin = DiceSkin.STANDARD,
) -> Figure:
    """Draw the points lost to optimal play, by throw and by the box that ended the turn.

    Args:
        evaluations: Of the same game, by the agents' names.
        language: The language of what is written.
        skin: What the dice show, which names the boxes.
    """
    say = texts(language)
    variant = next(iter(evaluations.values())).compiled.variant
    boxes = [box_name(box, language, skin) for box in variant.boxes]
    throws = [f"{word('throw', language)} {count}" for count in (1, 2, 3)]
    thickness = 0.8 / len(evaluations)
    height = 1.8 + (len(boxes) + 3) * max(0.3, 0.16 * len(evaluations))
    figure = Figure(figsize=(8, height), layout="constrained")
    parts = figure.subplots(2, 1, height_ratios=(3, len(boxes)))
    for axes, labels, title in (
        (parts[0], throws, say["by_throw"]),
        (parts[1], boxes, say["by_box"]),
    ):
        for position, (name, evaluation) in enumerate(evaluations.items()):
            lost = (
                evaluation.regret_by_throw
                if axes is parts[0]
                else evaluation.regret_by_box[: len(boxes)].sum(axis=1)
            )
            style = style_of(position)
            axes.barh(
                np.arange(len(labels)) + thickness * (position + 0.5) - 0.4,
                lost,
                thickness,
                color=style.colour,
                hatch=style.hatch,
                edgecolor="white",
                linewidth=0,
                label=wrapped(f"{name}: {number(evaluation.regret, language, 3)}"),
            )
        axes.set_yticks(range(len(labels)), labels)
        axes.set_ylim(len(labels) - 0.5, -0.5)
        axes.set_title(title, loc="left")
        axes.grid(axis="x", alpha=0.3)
    parts[1].set_xlabel(say["lost_axis"])
    figure.suptitle(f"{variant.name}: {say['where_lost'].lower()}")
    handles, labels = parts[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    return figure


def regret_figure(evaluation: ExactEvaluation, *, language: Language | str = Language.EN) -> Figure:
    """Draw a heat map of the points lost to optimal play, by box that ended the turn and round.

    Args:
        evaluation: The agent's evaluation.
        language: The language of all that is written.
    """
    language = Language(str(language))
    say = texts(language)
    boxes = [box_name(box, language) for box in evaluation.compiled.variant.boxes]
    lost = evaluation.regret_by_box[:-1]
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot()
    image = axes.imshow(lost, cmap="magma_r", aspect="auto", vmin=0.0, vmax=max(float(lost.max()), 1e-12))
    axes.set_xticks(range(lost.shape[1]), [str(count + 1) for count in range(lost.shape[1])])
    axes.set_yticks(
        range(len(boxes)), [f"{box} ({number(lost[i].sum(), language)})" for i, box in enumerate(boxes)]
    )
    axes.set_xlabel(word("round", language))
    axes.set_title(
        say["heat_title"].format(where=say["heat_map"], total=number(evaluation.regret, language, 3))
    )
    figure.colorbar(image, ax=axes, label=say["lost_axis"])
    return figure


def exact_figures(evaluation: ExactEvaluation, *, name: str = "agent") -> dict[str, Figure]:
    """Return the figures of a training curve, by TensorBoard tag."""
    return {
        "figures/score_distribution": score_distribution_figure({name: evaluation}),
        "figures/regret_by_box_and_round": regret_figure(evaluation),
    }


class Line(NamedTuple):
    """A learning curve to draw.

    Attributes:
        over: (points,) float64, how far training is.
        runs: (runs, points) float64, each run.
        middle: (points,) float64, the mean over runs.
        band: The low and the high ends of its interval, (points,) float64 each, if there is one.
    """

    over: NDArray[np.float64]
    runs: NDArray[np.float64]
    middle: NDArray[np.float64]
    band: tuple[NDArray[np.float64], NDArray[np.float64]] | None


def learning_curves_figure(
    curves: Mapping[str, Line],
    *,
    references: Mapping[str, float] | None = None,
    title: str = "",
    xlabel: str = "environment steps",
    ylabel: str = "share of the optimum (%)",
) -> Figure:
    """Draw learning curves: the mean thick, its band shaded, each run thin.

    Args:
        curves: By label.
        references: Heights of level lines, by label.
        title: The title.
        xlabel: What they are drawn over.
        ylabel: What is drawn.
    """
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.add_subplot()
    settled, all_of_it = list[float](), list[float]()
    for position, (label, line) in enumerate(curves.items()):
        style = style_of(position)
        axes.plot(
            line.over,
            line.middle,
            label=wrapped(label),
            linewidth=2.2,
            color=style.colour,
            linestyle=style.dashes,
        )
        if len(line.runs) > 1:
            axes.plot(line.over, line.runs.T, linewidth=0.6, alpha=0.6, color=style.colour)
        if line.band is not None:
            axes.fill_between(line.over, *line.band, alpha=0.15, color=style.colour, linewidth=0)
        edges = np.concatenate([line.runs, *([] if line.band is None else [np.stack(line.band)])])
        late = line.over >= line.over[0] + STEEP_PART * (line.over[-1] - line.over[0])
        all_of_it += [float(edges.min()), float(edges.max())]
        settled += [float(edges[:, late].min()), float(edges[:, late].max())]
    for (label, height), dashes in zip((references or {}).items(), REFERENCE_STYLES, strict=False):
        axes.axhline(height, color="0.25", linewidth=1.2, linestyle=dashes, label=label)
        settled.append(height)
    axes.set_xlabel(xlabel)
    axes.set_ylabel(ylabel)
    axes.set_title(title)
    axes.grid(alpha=0.3)
    if settled:
        # What is to be told apart comes late; a steep beginning leaves the picture if it would fill it.
        shown = [*all_of_it, *settled]
        if max(shown) - min(shown) > STEEP_TIMES * (max(settled) - min(settled)):
            shown = settled
        room = 0.04 * (max(shown) - min(shown)) or 1.0
        axes.set_ylim(min(shown) - room, max(shown) + room)
    if curves:
        figure.legend(loc="outside right upper", handlelength=3.5, frameon=False)
    return figure


class Interval(NamedTuple):
    """A method to draw: its runs, a statistic over them and its interval, if it has one."""

    label: str
    runs: Sequence[float]
    middle: float
    interval: Sequence[float] | None


def intervals_figure(rows: Sequence[Interval], *, title: str = "", xlabel: str = "") -> Figure:
    """Draw one line per method: its runs as dots, a statistic and its interval as a bar.

    Args:
        rows: The methods.
        title: The title.
        xlabel: What is drawn.
    """
    labels = [wrapped(row.label) for row in rows]
    num_lines = sum(max(2, 1 + label.count("\n")) for label in labels)
    figure = Figure(figsize=(8, 1.4 + 0.3 * num_lines), layout="constrained")
    axes = figure.add_subplot()
    for position, row in enumerate(rows):
        colour = style_of(position).colour
        if row.interval is not None:
            low, high = row.interval
            axes.barh(position, high - low, left=low, height=0.5, color=colour, alpha=0.25)
        axes.plot([row.middle] * 2, [position - 0.25, position + 0.25], color=colour, linewidth=2.5)
        axes.scatter(row.runs, [position] * len(row.runs), s=22, color=colour, edgecolors="white", zorder=3)
    # Bars would end the axis where the lowest of them begins, and cut the dots below it.
    drawn = [value for row in rows for value in (*row.runs, row.middle, *(row.interval or ()))]
    room = 0.04 * (max(drawn) - min(drawn)) or 1.0
    axes.set_xlim(min(drawn) - room, max(drawn) + room)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_yticks(range(len(rows)), labels)
    axes.set_xlabel(xlabel)
    axes.set_title(title)
    axes.grid(axis="x", alpha=0.3)
    return figure
