"""Pictures: nothing cut off, nothing over something else, and what is drawn is what was given."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure

from agents.evaluation.figures import (
    STYLES,
    Interval,
    Line,
    intervals_figure,
    learning_curves_figure,
    save_figure,
)
from tests.agents.evaluation.drawn import assert_all_inside

LONG = "a method whose name goes on, learning_rate.start=0.001, ent_coef=0.03, net_arch=[256, 256]"


def line(*heights: float, spread: float = 0.0) -> Line:
    middle = np.array(heights)
    runs = np.stack([middle - spread, middle, middle + spread])
    return Line(np.arange(len(middle), dtype=float), runs, middle, (middle - 2 * spread, middle + 2 * spread))


def test_every_dot_and_every_end_of_an_interval_is_on_the_axis() -> None:
    rows = [Interval(LONG, [90.0, 98.0, 99.0, 99.1], 98.5, [97.0, 99.5]), Interval("b", [97.0], 97.0, None)]
    figure = intervals_figure(rows, title="all of it", xlabel="share")
    low, high = figure.axes[0].get_xlim()
    assert low < 90.0
    assert high > 99.5
    assert len(figure.axes[0].patches) == 1
    assert_all_inside(figure)


def test_curves_show_each_run_the_mean_and_the_references() -> None:
    figure = learning_curves_figure(
        {LONG: line(90.0, 95.0, 97.0, spread=1.0), "b": line(80.0, 96.0)},
        references={"optimum": 100.0},
        title="curves",
    )
    axes = figure.axes[0]
    heights = [np.asarray(drawn.get_ydata()).tolist() for drawn in axes.lines]
    assert [90.0, 95.0, 97.0] in heights
    assert [89.0, 94.0, 96.0] in heights
    assert [100.0, 100.0] in heights
    assert axes.get_ylim()[1] > 100.0
    assert len(axes.collections) == 2
    assert_all_inside(figure)


def test_a_steep_beginning_leaves_the_picture_and_nothing_else_does() -> None:
    curve = line(0.0, *([99.0, 99.5] * 10), spread=0.1)
    low, high = learning_curves_figure({"a": curve}).axes[0].get_ylim()
    assert 98 < low < 98.8
    assert high > 99.7


def test_styles_are_told_apart_in_grey() -> None:
    """What looks alike in grey differs in its dashes and its hatch."""
    lightness = sorted(
        float(np.dot(mpl.colors.to_rgb(style.colour), (0.299, 0.587, 0.114))) for style in STYLES[:4]
    )
    assert all(after - before > 0.08 for before, after in pairwise(lightness))
    assert len({style.dashes for style in STYLES}) == len({style.hatch for style in STYLES}) == len(STYLES)


def test_a_figure_is_written_as_png_and_svg_and_always_the_same(tmp_path: Path) -> None:
    first = save_figure(learning_curves_figure({"a": line(1.0, 2.0)}), tmp_path / "new" / "one", "curves")
    assert [path.name for path in first] == ["curves.png", "curves.svg"]
    again = save_figure(learning_curves_figure({"a": line(1.0, 2.0)}), tmp_path / "two", "curves")
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in again]
    assert first[0].read_bytes().startswith(b"\x89PNG")
    with pytest.raises(FileExistsError):
        save_figure(Figure(), first[0], "curves")
