"""Figures of exact evaluations and learning curves, drawn with matplotlib and without a display."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from matplotlib.figure import Figure

from agents.evaluation.exact import optimal_evaluation
from generala_env.rules.names import Language, box_name
from generala_env.solver.evaluation import ExactEvaluation

NEGLIGIBLE_SHARE: Final = 1e-4
"""The axis of a distribution ends where bins hold less than this share of the games."""

STEEP_PART: Final = 0.1
"""The axis of learning curves is fitted to what comes after this share of the steps."""


def score_distribution_figure(evaluation: ExactEvaluation, *, name: str = "agent") -> Figure:
    """Draw the distribution of final scores against that of optimal play.

    Args:
        evaluation: The agent's evaluation.
        name: The agent's name in the legend.
    """
    figure = Figure(figsize=(8, 4), layout="constrained")
    axes = figure.add_subplot()
    optimal = optimal_evaluation(evaluation)
    width = 5.0
    top = max(float(evaluation.scores.max()), float(optimal.scores.max()))
    # Only a penalty for winning makes scores below 0.
    bottom = min(0.0, float(evaluation.scores.min()), float(optimal.scores.min()))
    edges = np.append(np.arange(bottom, top + width, width), top + 2 * width)
    last = 0.0
    for label, colour, result in (("optimum", "0.6", optimal), (name, "C0", evaluation)):
        shares, _ = np.histogram(result.scores, edges, weights=result.score_probabilities)
        last = max(last, float(edges[1:][shares > NEGLIGIBLE_SHARE].max(initial=0.0)))
        axes.stairs(
            100 * shares,
            edges,
            fill=label == "optimum",
            color=colour,
            linewidth=1.5,
            label=f"{label}: mean {result.expected_score:.2f}, s.d. {result.std_score:.1f}",
        )
    axes.set_xlim(bottom, last)
    axes.set_xlabel("final score (points)")
    axes.set_ylabel(f"games (%, bins of {width:g} points)")
    axes.set_title(f"{evaluation.compiled.variant.name}: {100 * evaluation.optimality:.2f} % of the optimum")
    axes.legend()
    return figure


def regret_figure(evaluation: ExactEvaluation, *, language: Language | str = Language.EN) -> Figure:
    """Draw a heat map of the points lost to optimal play, by box that ended the turn and round.

    Args:
        evaluation: The agent's evaluation.
        language: The language of the boxes' names.
    """
    boxes = [box_name(box, language) for box in evaluation.compiled.variant.boxes]
    lost = evaluation.regret_by_box[:-1]
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot()
    image = axes.imshow(lost, cmap="magma_r", aspect="auto", vmin=0.0, vmax=max(float(lost.max()), 1e-12))
    axes.set_xticks(range(lost.shape[1]), [str(number + 1) for number in range(lost.shape[1])])
    axes.set_yticks(range(len(boxes)), [f"{box} ({lost[i].sum():.2f})" for i, box in enumerate(boxes)])
    axes.set_xlabel("round")
    axes.set_title(f"points lost per game by box closed and round: {evaluation.regret:.3f} in all")
    figure.colorbar(image, ax=axes, label="points per game")
    return figure


def exact_figures(evaluation: ExactEvaluation, *, name: str = "agent") -> dict[str, Figure]:
    """Return the figures of a training curve, by TensorBoard tag."""
    return {
        "figures/score_distribution": score_distribution_figure(evaluation, name=name),
        "figures/regret_by_box_and_round": regret_figure(evaluation),
    }


def learning_curves_figure(
    curves: Mapping[str, tuple[Sequence[float], Sequence[float], Sequence[float], Sequence[float]]],
    *,
    title: str = "",
    ylabel: str = "share of the optimum (%)",
) -> Figure:
    """Draw learning curves with bands.

    Args:
        curves: By label: steps, middle, low and high end of the band.
        title: The title.
        ylabel: What is drawn.
    """
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.add_subplot()
    for label, (steps, middle, low, high) in curves.items():
        (line,) = axes.plot(steps, middle, label=label)
        axes.fill_between(steps, low, high, alpha=0.25, color=line.get_color(), linewidth=0)
    axes.set_xlabel("environment steps")
    axes.set_ylabel(ylabel)
    axes.set_title(title)
    axes.grid(alpha=0.3)
    # What is to be told apart is near the top; the steep beginning may leave the picture.
    settled = [
        height
        for steps, _, low, _ in curves.values()
        for step, height in zip(steps, low, strict=True)
        if step >= steps[-1] * STEEP_PART
    ]
    if settled and min(settled) < axes.get_ylim()[1]:
        axes.set_ylim(bottom=min(settled) - 0.02 * (axes.get_ylim()[1] - min(settled)))
    if curves:
        axes.legend()
    return figure


def intervals_figure(
    rows: Sequence[tuple[str, Sequence[float], float, float, float]], *, title: str = "", xlabel: str = ""
) -> Figure:
    """Draw one line per method: its runs as dots, a statistic and its interval as a bar.

    Args:
        rows: Label, the values of the runs, the statistic, the low and the high end.
        title: The title.
        xlabel: What is drawn.
    """
    figure = Figure(figsize=(8, 1.4 + 0.6 * len(rows)), layout="constrained")
    axes = figure.add_subplot()
    for position, (_, values, middle, low, high) in enumerate(rows):
        colour = f"C{position % 10}"
        axes.barh(position, max(high - low, 0.0), left=low, height=0.5, color=colour, alpha=0.35)
        axes.plot([middle, middle], [position - 0.25, position + 0.25], color=colour, linewidth=2.5)
        axes.scatter(values, [position] * len(values), s=14, color=colour, edgecolors="white", zorder=3)
    axes.set_yticks(range(len(rows)), [row[0] for row in rows])
    axes.invert_yaxis()
    axes.set_xlabel(xlabel)
    axes.set_title(title)
    axes.grid(axis="x", alpha=0.3)
    return figure
