"""What must hold of every picture that is drawn."""

from __future__ import annotations

from matplotlib.figure import Figure


def assert_all_inside(figure: Figure) -> None:
    figure.draw_without_rendering()  # lays it out
    drawn = figure.get_tightbbox()
    width, height = figure.get_size_inches()
    assert min(drawn.x0, drawn.y0) >= 0
    assert drawn.x1 <= width
    assert drawn.y1 <= height
