"""What a run says on the way: how fast this machine is, how far it has come, and what has changed."""

from __future__ import annotations

import copy
import io
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from tqdm import tqdm

from agents.runs import training
from agents.runs.training import Curves, TrainingRun
from agents.saving.agent_files import CHECKPOINT_FOLDER, checkpoint_files, read_file, write_file
from agents.saving.provenance import provenance
from tests.agents.card_configs import config_of


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def run(tmp_path: Path, told: list[str]) -> TrainingRun:
    """A run that has taken no step."""
    (tmp_path / CHECKPOINT_FOLDER).mkdir()
    config = config_of("dqn", variant="clasica_obligada", total_timesteps=4096)
    return TrainingRun(tmp_path, config, told.append)


# --- how fast this machine is ---------------------------------------------------------------------


def tell_speed(run: TrainingRun, monkeypatch: pytest.MonkeyPatch, *moments: tuple[float, int]) -> None:
    """Let a run look at its clock at moments: seconds, and steps taken."""
    for seconds, steps in moments:
        monkeypatch.setattr(time, "monotonic", Mock(return_value=seconds))
        run.model.num_timesteps = steps
        run._tell_speed()


def test_the_speed_is_told_once_with_what_is_left(
    run: TrainingRun, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # A step takes 2 GFLOP here, so that the figures are seen.
    monkeypatch.setattr(training, "operations_per_step", lambda _: 2e9)
    # The first update took 100 seconds of compiling; the next 512 steps take four.
    tell_speed(run, monkeypatch, (0.0, 0), (104.0, 512))
    told.clear()
    run.speed_told, run.timed_from = False, None
    tell_speed(run, monkeypatch, (100.0, 512), (102.0, 768), (104.0, 1024), (108.0, 1536))
    (line,) = told
    assert line == (
        "this machine trains 128 steps a second (256.0 GFLOP/s in networks): about 24 seconds for the "
        "3,072 steps and 6.1 TFLOP left, evaluations apart"
    )


def test_nothing_is_said_of_the_speed_before_it_is_known_or_after_the_end(
    run: TrainingRun, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tell_speed(run, monkeypatch, (0.0, 512), (2.9, 1024), (5.0, 4096), (9.0, 4608))
    assert told == []


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.4, "0 seconds"), (99.4, "99 seconds"), (100, "2 minutes"), (7200, "120 minutes")],
)
def test_long_times_are_told_in_minutes(seconds: float, words: str) -> None:
    assert training._minutes(seconds) == words


# --- where there is no terminal -------------------------------------------------------------------

JUDGEMENT: Any = SimpleNamespace(mean_score=123.456, optimality=0.9876)


@pytest.mark.parametrize(
    ("is_shown", "has_terminal", "is_told"), [(True, False, True), (True, True, False), (False, False, False)]
)
def test_a_log_has_a_line_for_each_evaluation(
    run: TrainingRun, told: list[str], is_shown: bool, has_terminal: bool, is_told: bool
) -> None:
    run.is_shown = is_shown
    run.bar = tqdm(disable=not has_terminal, file=io.StringIO())
    run.model.num_timesteps = 1024
    run._tell_in_a_log(JUDGEMENT)
    run.bar.close()
    assert told == (["step 1,024, 25%: score 123.46, 98.76% of the optimum"] if is_told else [])


def test_a_log_does_not_go_past_its_end(run: TrainingRun, told: list[str]) -> None:
    run.model.num_timesteps = 4608
    run._tell_in_a_log(JUDGEMENT)
    assert told == ["step 4,608, 100%: score 123.46, 98.76% of the optimum"]


def test_training_into_a_log_writes_lines_and_no_bar(
    run: TrainingRun, told: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    run.train()
    assert [line for line in told if line.startswith("step 4,096, 100%: score ")]
    assert capsys.readouterr() == ("", "")


# --- checkpoints made elsewhere -------------------------------------------------------------------


def saved(run: TrainingRun) -> tuple[Path, dict[str, Any], Any]:
    run.curves = Curves(run.folder, 0)
    run._save_checkpoint()
    run.curves.close()
    (path,) = checkpoint_files(run.folder)
    content, arrays = read_file(path, "checkpoint")
    return path, content, arrays


@pytest.mark.parametrize("package", ["torch", "numpy", "numba"])
def test_a_checkpoint_of_another_package_says_that_bits_may_differ(
    run: TrainingRun, told: list[str], package: str
) -> None:
    path, content, arrays = saved(run)
    content["versions"][package] = "0.1"
    write_file(path, "checkpoint", content, arrays)
    run.restore()
    here = provenance()["versions"][package]
    assert told == [
        f"warning: the checkpoint was made with {package} 0.1 (here {here}): the run goes on, "
        "but bits may differ",
        "resuming from step 0",
    ]


def test_a_checkpoint_of_another_processor_says_that_bits_may_differ(
    run: TrainingRun, told: list[str]
) -> None:
    path, content, arrays = saved(run)
    content["processor"] = "Abacus 3000"
    content["versions"]["torch"] = "1.0"
    write_file(path, "checkpoint", content, arrays)
    run.restore()
    now = provenance()
    assert told[0] == (
        f"warning: the checkpoint was made with torch 1.0 (here {now['versions']['torch']}), processor "
        f"Abacus 3000 (here {now['processor']}): the run goes on, but bits may differ"
    )


def test_a_checkpoint_of_here_or_of_a_version_that_did_not_say_tells_nothing(
    run: TrainingRun, told: list[str]
) -> None:
    path, content, arrays = saved(run)
    run.restore()
    assert told == ["resuming from step 0"]
    older = copy.deepcopy(content)
    del older["processor"], older["versions"]
    write_file(path, "checkpoint", older, arrays)
    run.restore()
    assert told == ["resuming from step 0"] * 2
