"""Files nested deeper than Python can follow are refused by every command in one line, with code 2."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from safetensors.numpy import save_file

from agents.cli import run_command
from agents.runs.folder import CONFIG_FILE, EVALUATION_FILE, PROGRESS_FILE, RUN_FILE
from agents.saving import agent_files
from agents.saving.agent_files import FORMAT
from generala_env.solver.duel import solve_duel
from scripts import compare, evaluate, play, plot, solve, train
from tests.agents.written_runs import write_run

DEEP = 200_000
NESTED = "[" * DEEP + "]" * DEEP

Main = Callable[[Sequence[str] | None], int | None]


def refused(main: Main, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return the one line that a command ends with."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        run_command(main, arguments)
    assert ended.value.code == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    (line,) = shown.err.splitlines()
    # The line must not repeat what it complains of.
    assert len(line) < 500
    return line


@pytest.fixture(autouse=True)
def _named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["command"])


def nest(path: Path) -> Path:
    path.write_text(NESTED + "\n")
    return path


@pytest.mark.parametrize("key", ["content", "sha256", "format", "kind"])
def test_agents(tmp_path: Path, capsys: pytest.CaptureFixture[str], key: str) -> None:
    path = tmp_path / "agent.safetensors"
    header = {"kind": "agent", "format": str(FORMAT), "content": NESTED, "sha256": "0"}
    save_file({"weights": np.zeros(1, np.float32)}, path, {**header, key: NESTED})
    assert "agent.safetensors" in refused(evaluate.main, capsys, "--agent", str(path))
    assert "agent.safetensors" in refused(solve.main, capsys, "--players", "2", "--first", str(path))


def test_agents_whose_own_checksum_fits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "agent.safetensors"
    monkeypatch.setattr(agent_files, "_checksum", Mock(return_value="0"))
    header = {"kind": "agent", "format": str(FORMAT), "content": NESTED, "sha256": "0"}
    save_file({"weights": np.zeros(1, np.float32)}, path, header)
    assert "nested deeper than" in refused(evaluate.main, capsys, "--agent", str(path))


def test_agents_with_a_header_that_is_itself_nested(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "agent.safetensors"
    text = ('{"a":' * DEEP + "1" + "}" * DEEP).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text)
    assert "is damaged or cut short" in refused(evaluate.main, capsys, "--agent", str(path))


@pytest.mark.parametrize("name", [EVALUATION_FILE, CONFIG_FILE, PROGRESS_FILE])
def test_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    runs = [write_run(tmp_path / f"run{seed}", seed=seed) for seed in (0, 1)]
    nest(runs[1] / name)
    folders = [str(run) for run in runs]
    assert name in refused(plot.main, capsys, "curves", *folders, "--out", str(tmp_path / "pictures"))
    if name != PROGRESS_FILE:  # which it does not read
        assert name in refused(compare.main, capsys, *folders)


@pytest.mark.parametrize("name", [RUN_FILE, CONFIG_FILE])
def test_runs_that_are_to_go_on(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    (tmp_path / CONFIG_FILE).write_text("variant: ruibal\nalgorithm: {name: ppo}\ntotal_timesteps: 9\n")
    (tmp_path / RUN_FILE).write_text("{}")
    nest(tmp_path / name)
    line = refused(train.main, capsys, "--resume", str(tmp_path))
    assert name in line
    assert "nested" in line


@pytest.mark.parametrize("nested", ["[" * DEEP, "{a: " * DEEP, "- " * DEEP, "? " * DEEP])
def test_configs(tmp_path: Path, capsys: pytest.CaptureFixture[str], nested: str) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(nested)
    assert "nested too deeply" in refused(train.main, capsys, "--config", str(path), "--dry-run")


@pytest.mark.parametrize("lines", [[NESTED], ["{}", NESTED]])
def test_records(tmp_path: Path, capsys: pytest.CaptureFixture[str], lines: list[str]) -> None:
    path = tmp_path / "game.jsonl"
    path.write_text("".join(line + "\n" for line in lines))
    for option in ("--replay", "--resume"):
        assert "game.jsonl:" in refused(play.main, capsys, option, str(path))


def test_stores(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    solve_duel("doble_obligada", store=tmp_path)
    (manifest,) = tmp_path.glob("*/duel.json")
    nest(manifest)
    arguments = ("--players", "2", "--variant", "doble_obligada", "--store", str(tmp_path))
    assert "duel.json: damaged" in refused(solve.main, capsys, *arguments)
    assert "duel.json: damaged" in refused(
        solve.main, capsys, *arguments, "--position", "me: 0, open all; other: 0, open all"
    )
