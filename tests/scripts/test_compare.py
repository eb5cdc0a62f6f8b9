"""The compare command: what it prints, what it writes, what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from PIL import Image

from agents.cli import run_command
from scripts.compare import main
from tests.agents.written_runs import write_run


@pytest.fixture
def runs(tmp_path: Path) -> str:
    for seed in range(3):
        write_run(tmp_path / "runs" / f"ppo{seed}", seed=seed, score=147.0 + seed)
        write_run(tmp_path / "runs" / f"dqn{seed}", seed=seed, score=140.0 + seed, algorithm="dqn")
    return str(tmp_path / "runs" / "*")


def test_json_is_one_object(runs: str, capsys: pytest.CaptureFixture[str]) -> None:
    main([runs, "--json", "--confidence", "0.9"])
    shown = capsys.readouterr().out
    assert shown.count("\n") == 1
    result = json.loads(shown)
    assert [group["label"] for group in result["groups"]] == ["dqn", "ppo"]
    assert result["confidence"] == 0.9


def test_tables_for_people(runs: str, capsys: pytest.CaptureFixture[str]) -> None:
    main([runs])
    shown = capsys.readouterr().out
    assert "98.67 (97.01 to 100.32)" in shown
    assert "a run of ppo beats one of dqn with probability 1.00 (0.50" in shown
    assert "3 runs: the interval is honest only if" in shown
    main([runs, "--markdown"])
    assert "| ppo | 3 | 98.67 (97.01 to 100.32) |" in capsys.readouterr().out


def test_tables_and_plots_are_written(runs: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    main([runs, "--out", str(out), "--json"])
    names = {path.name for path in out.iterdir()}
    plots = {"scores.png", "scores.svg", "learning_curves.png", "learning_curves.svg"}
    assert names == {"comparison.json", "comparison.md"} | plots
    assert json.loads((out / "comparison.json").read_text())["groups"][1]["num_runs"] == 3
    for name in ("scores", "learning_curves"):
        with Image.open(out / f"{name}.png") as image:
            assert image.width > 1000
        assert ElementTree.parse(out / f"{name}.svg").getroot().tag.endswith("svg")
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    main([runs, "--out", str(out), "--json"])
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before


@pytest.mark.parametrize(
    ("argv", "named"),
    [
        (["{runs}", "--chosen-on", "{runs}"], "on which the choice was made"),
        (["no/such/run"], "no/such/run"),
        (["{runs}", "--out", "{file}"], "--out"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(
    runs: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], argv: list[str], named: str
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SystemExit) as stop:
        run_command(main, [part.format(runs=runs, file=tmp_path / "file") for part in argv])
    captured = capsys.readouterr()
    assert stop.value.code == 2
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert named in captured.err
