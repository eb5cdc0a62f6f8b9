"""The benchmark's plumbing; its figures are nobody's business here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import scripts.benchmark as benchmark
from agents.errors import UsageError
from scripts.benchmark import SECTIONS, Effort, Figure, Section, main, rate, seconds_of


def test_json_is_one_object_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["environment", "--seconds", "0.01", "--tries", "1", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert {"date", "cores", "load_average", "versions", "sections"} <= set(result)
    figures = {row["name"]: row for row in result["sections"]["environment"]["figures"]}
    ours = figures["Generala-v0 ruibal"]
    assert ours["peer"] == "Gymnasium CartPole-v1"
    assert ours["ratio"] == pytest.approx(ours["value"] / figures[ours["peer"]]["value"])
    assert ours["value"] > 100


def test_batched_figures_and_their_drawing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(benchmark, "NUM_ENVS", 16)
    monkeypatch.setattr(benchmark, "SIZES", (1, 4))
    monkeypatch.setenv("COLUMNS", "200")
    plot = tmp_path / "scaling.svg"
    main(["batched", "--seconds", "0.01", "--tries", "1", "--num-threads", "2", "--plot", str(plot)])
    printed = capsys.readouterr().out
    assert "2 threads" in printed
    assert "2 processes of 1 thread" in printed
    assert "GeneralaVecEnv" in printed
    drawn = plot.read_text(encoding="utf-8")
    assert drawn.startswith("<?xml")
    assert [path.name for path in tmp_path.iterdir()] == ["scaling.svg"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["enviroment"], "section: 'enviroment' is not one of"),
        (["--seconds", "0"], "--seconds: 0.0"),
        (["--plot", "scaling.txt"], "does not end in .png, .svg or .pdf"),
        (["solver", "--plot", "scaling.png"], "the section batched, which is left out"),
        (["--plot", "no/such/folder/scaling.png"], "there is no folder"),
    ],
)
def test_bad_input_is_told_in_one_line(arguments: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        main(arguments)


def test_sections_are_measured_in_the_order_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def made(_: Effort) -> Section:
        section = Section(missing=["nothing (not installed)"])
        section.add("old", 4.0, "s")
        section.add("new", 2.0, "s", "old")
        section.add("alone", 2.0, "s", "not there")
        return section

    monkeypatch.setitem(SECTIONS, "made", made)
    main(["made"])
    printed = capsys.readouterr().out
    assert "2.00" in printed, "half the seconds are twice as good"
    assert "left out: nothing" in printed
    assert made(Effort()).figures[2] == Figure("alone", 2.0, "s", None, None)


def test_rates_count_what_was_done() -> None:
    calls: list[int] = []

    def steps(amount: int) -> int:
        calls.append(amount)
        return amount

    assert rate(steps, Effort(1e-9, 2, 1)) > 0
    assert len(calls) == 3
    runs: list[Any] = []
    assert seconds_of(lambda: runs.append(1), Effort(0.1, 4, 1)) >= 0
    assert len(runs) == 5, "one to warm up, and the tries"


@pytest.mark.slow
def test_training_is_measured_on_one_thread_at_the_same_settings() -> None:
    rows = SECTIONS["training"](Effort(0.01, 1, 1)).figures
    assert [row.ratio is None for row in rows] == [True, False, True, False, True, False, True, True]
    assert all(row.value > 0 for row in rows)
