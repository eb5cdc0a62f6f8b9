"""The evaluate command: JSON, tables, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agents.cli import run_command
from agents.learning.learners import make_policy
from agents.saving.agent_files import WEIGHTS, Blueprint, write_file
from generala_env.envs.observation import observation_layout
from generala_env.rules.compiled import compile_variant
from generala_env.rules.variants import get_variant
from scripts.evaluate import main


def run_json(capsys: pytest.CaptureFixture[str], *argv: str) -> dict[str, Any]:
    main([*argv, "--json"])
    captured = capsys.readouterr()
    assert captured.out.count("\n") == 1
    result = json.loads(captured.out)
    assert isinstance(result, dict)
    return result


def fail(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    with pytest.raises(SystemExit) as stop:
        run_command(main, list(argv))
    captured = capsys.readouterr()
    assert stop.value.code == 2
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    return captured.err


def test_one_agent_is_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    result = run_json(capsys, "--agent", "tips", "--variant", "ruibal", "--games", "200", "--seed", "3")
    assert result["agent"] == "tips"
    assert result["variant"] == "ruibal"
    assert result["num_games"] == 200
    assert result["illegal_actions"] == 0
    assert result["seed"] == 3
    low, high = result["ci95"]
    assert low < result["mean_score"] < high
    assert result["optimality"] == result["mean_score"] / result["optimal_score"]
    assert run_json(capsys, "--agent", "tips", "--games", "200", "--seed", "3") == result


def test_several_agents_are_a_list(capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--instant-win", "play_on", "--games", "50", "--set", "generala_points=50")
    result = run_json(capsys, "--agent", "tips", "random", "--agent", "turn_greedy", *options)
    rows = result["agents"]
    assert [row["agent"] for row in rows] == ["tips", "random", "turn_greedy"]
    assert {row["variant"] for row in rows} == {"ruibal(generala_points=50)"}
    assert {row["instant_win_points"] for row in rows} == {None}


def test_the_table_shows_every_agent(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--agent", "tips", "random", "--games", "50"])
    shown = capsys.readouterr().out
    assert "tips" in shown
    assert "random" in shown
    assert "50 games" in shown


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of other rules than the default, with an untrained network in it."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "config.yaml").write_text(
        "variant: {base: ruibal, boxes: [ones, sixes, poker]}\nenv: {instant_win: 33}\nseed: 1\n"
    )
    rules = get_variant({"base": "ruibal", "boxes": ["ones", "sixes", "poker"]})
    layout = observation_layout(compile_variant(rules))
    settings = {"net_arch": [8], "activation": "relu", "keeps_head": True}
    weights = make_policy("ppo", layout, settings).state_dict()
    plan = Blueprint("tiny", "ppo", rules, 33, layout.names, settings, 1_000, 1)
    arrays = {f"{WEIGHTS}{name}": tensor.numpy() for name, tensor in weights.items()}
    write_file(folder / "agent.safetensors", "agent", plan.to_dict(), arrays)
    return folder


@pytest.mark.parametrize("exact", [(), ("--exact",)])
@pytest.mark.parametrize("file", ["", "agent.safetensors"])
def test_a_trained_agent_brings_its_rules(
    capsys: pytest.CaptureFixture[str], run_folder: Path, file: str, exact: tuple[str, ...]
) -> None:
    result = run_json(capsys, "--agent", str(run_folder / file), "--games", "50", *exact)
    assert result["fingerprint"] == get_variant({"base": "ruibal", "boxes": "ones sixes poker"}).fingerprint
    assert result["instant_win_points"] == 33
    assert result["illegal_actions"] == 0
    assert 0 < result["optimality"] < 1.2


def test_an_agent_of_other_rules_is_refused(capsys: pytest.CaptureFixture[str], run_folder: Path) -> None:
    told = fail(capsys, "--agent", str(run_folder), "--variant", "ruibal")
    assert get_variant("ruibal").fingerprint in told
    assert get_variant({"base": "ruibal", "boxes": "ones sixes poker"}).fingerprint in told


@pytest.mark.parametrize("exact", [[], ["--exact"]])
def test_agents_of_several_rules_keep_to_their_own(
    capsys: pytest.CaptureFixture[str], exact: list[str]
) -> None:
    names = ["zoo/clasica_obligada-dqn", "zoo/doble_obligada-dqn", "turn_greedy"]
    rows = run_json(capsys, "--agent", *names, "--games", "50", *exact)["agents"]
    assert [row["variant"] for row in rows] == ["clasica_obligada", "doble_obligada", "clasica_obligada"]
    assert all(row["optimality"] > 0.99 for row in rows if exact)
    if not exact:
        assert ["difference_to_first" in row for row in rows] == [False, False, True]


def test_a_run_without_a_model_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, run_folder: Path
) -> None:
    (tmp_path / "config.yaml").write_text((run_folder / "config.yaml").read_text())
    assert str(tmp_path) in fail(capsys, "--agent", str(tmp_path))
    (tmp_path / "agent.safetensors").write_bytes((run_folder / "agent.safetensors").read_bytes()[:-7])
    assert str(tmp_path) in fail(capsys, "--agent", str(tmp_path))
    (tmp_path / "agent.safetensors").write_text("")
    assert "agent.safetensors" in fail(capsys, "--agent", str(tmp_path / "agent.safetensors"))


@pytest.mark.parametrize(
    ("argv", "named"),
    [
        (["--agent", "optima"], "did you mean optimal"),
        (["--agent", "no/such/folder"], "no/such/folder"),
        (["--agent", "tips", "--variant", "ruibaal"], "ruibaal"),
        (["--agent", "tips", "--set", "generala_points=many"], "generala_points"),
        (["--agent", "tips", "--games", "1"], "--games"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(
    capsys: pytest.CaptureFixture[str], argv: list[str], named: str
) -> None:
    assert named in fail(capsys, *argv)


def test_a_folder_that_is_no_run_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert "config.yaml" in fail(capsys, "--agent", str(tmp_path))
    (tmp_path / "config.yaml").write_text("a: [")
    assert "YAML" in fail(capsys, "--agent", str(tmp_path))
    (tmp_path / "config.yaml").write_text("variant: nosuch")
    assert "nosuch" in fail(capsys, "--agent", str(tmp_path))


SMALL = ("--variant", "ruibal", "--set", "boxes=ones sixes escalera poker")


def test_exact_evaluation_adds_up(capsys: pytest.CaptureFixture[str]) -> None:
    result = run_json(capsys, "--agent", "turn_greedy", "--exact", "--blunders", "2", *SMALL)
    assert result["exact"] is True
    assert result["ci95"] == [result["mean_score"]] * 2
    lost = result["optimal_score"] - result["mean_score"]
    assert lost > 0
    assert result["regret"] == pytest.approx(lost, abs=1e-9)
    assert len(result["blunders"]) == 2
    rows = run_json(capsys, "--agent", "optimal", "random", "--exact", *SMALL)["agents"]
    assert rows[0]["optimality"] == pytest.approx(1.0, abs=1e-12)
    assert rows[1]["optimality"] < 0.6


def test_exact_evaluation_prints_where_points_are_lost(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--agent", "turn_greedy", "--exact", *SMALL])
    shown = capsys.readouterr().out
    assert "costliest decisions" in shown
    assert "points lost by kind: wrong keep" in shown


def test_several_agents_are_compared_game_by_game(capsys: pytest.CaptureFixture[str]) -> None:
    rows = run_json(capsys, "--agent", "turn_greedy", "tips", "--games", "300", *SMALL)["agents"]
    assert "difference_to_first" not in rows[0]
    paired = rows[1]["difference_to_first"]
    assert paired["mean"] == pytest.approx(rows[1]["mean_score"] - rows[0]["mean_score"])


def test_a_report_is_written(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    report = tmp_path / "out.html"
    options = ("--report", str(report), "--lang", "pt", "--dice", "poker")
    result = run_json(capsys, "--agent", "turn_greedy", *options, *SMALL)
    assert result["exact"] is True
    assert report.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert list(tmp_path.iterdir()) == [report]


def test_reports_that_cannot_be_written_are_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert "one agent" in fail(capsys, "--agent", "tips", "random", "--report", str(tmp_path / "a.html"))
    assert "not a folder" in fail(capsys, "--agent", "tips", "--report", str(tmp_path / "no" / "a.html"))
    assert "is a folder" in fail(capsys, "--agent", "tips", "--report", str(tmp_path))
