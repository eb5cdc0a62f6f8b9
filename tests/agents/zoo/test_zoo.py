"""The agents that ship: whole, as their cards say, and refused where they are not."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from agents.registry import make_agent
from agents.runs.zoo_cards import MOST_BYTES, build, check
from agents.zoo import entries
from agents.zoo.entries import ZOO_FOLDER, ZooError, agent_path, overview, read_card, zoo_names
from generala_env.rules.variants import PRESETS, Variant
from generala_env.solver.solo import solve_solo
from scripts import zoo as script
from tests.agents.card_configs import config_of

SMALL = "zoo/clasica_obligada-dqn"


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    for path in ZOO_FOLDER.glob(f"{SMALL.removeprefix('zoo/')}.*"):
        shutil.copy(path, tmp_path / path.name)
    return tmp_path


def test_every_preset_has_an_agent_of_each_algorithm() -> None:
    assert set(zoo_names()) == {f"zoo/{preset}-{name}" for preset in PRESETS for name in ("ppo", "dqn")}
    assert len(overview()) == len(zoo_names())


@pytest.mark.parametrize("name", zoo_names())
def test_every_card_fits_its_file_and_its_rules(name: str) -> None:
    card = read_card(name)
    path = agent_path(name)
    assert path.stat().st_size == card["bytes"] <= MOST_BYTES
    variant = Variant.from_dict(card["variant"])
    assert variant.fingerprint == card["fingerprint"]
    optimum = solve_solo(variant, instant_win=card["instant_win"]).expected_score
    assert card["optimal_score"] == pytest.approx(optimum, abs=1e-6)
    assert card["mean_score"] == max(card["scores_by_seed"].values())
    assert card["mean_score"] == pytest.approx(optimum - card["regret"], abs=1e-6)
    agent: Any = make_agent(name, variant)
    # The fast score, on the way to which nothing of the evaluation is used.
    assert agent.play.exact_score(card["instant_win"]) == pytest.approx(card["mean_score"], abs=1e-3)


def test_checking_evaluates_again() -> None:
    found = check(SMALL)
    assert found["mean_score"] == pytest.approx(found["on_card"], abs=1e-4)


def test_a_card_that_says_another_score_is_refused(copied: Path) -> None:
    path = copied / "clasica_obligada-dqn.json"
    path.write_text(path.read_text().replace('"mean_score": 76.0', '"mean_score": 76.5'))
    with pytest.raises(ZooError, match=r"scores 76\.0"):
        check(SMALL, copied)


def test_a_file_that_is_not_its_cards_is_refused(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (copied / "clasica_obligada-dqn.safetensors").write_bytes(b"something else")
    with pytest.raises(ZooError, match="not the file that its card describes"):
        agent_path(SMALL, copied)
    monkeypatch.setattr(entries.agent_path, "__defaults__", (copied,))
    with pytest.raises(ZooError, match="not the file"):
        make_agent(SMALL, "clasica_obligada")


@pytest.mark.parametrize("text", ["", "{", "[" * 200_000, "{}", '{"format": 9, "sha256": "x"}'])
def test_a_broken_card_is_refused_by_name(copied: Path, text: str) -> None:
    (copied / "clasica_obligada-dqn.json").write_text(text)
    with pytest.raises(ZooError, match=SMALL):
        read_card(SMALL, copied)


def test_an_unknown_name_is_refused_with_the_nearest() -> None:
    with pytest.raises(ZooError, match=r"did you mean zoo/ruibal-ppo\?"):
        make_agent("zoo/ruibal-ppoo", "ruibal")


def test_an_entry_is_built_of_runs_that_differ_in_their_seed(tmp_path: Path) -> None:
    from agents.config.loading import parse_config
    from agents.runs.folder import create_run_folder
    from agents.runs.training import TrainingRun

    runs = []
    for seed in (0, 1):
        config = config_of("dqn", variant="clasica_obligada", seed=seed)
        resolved = parse_config(json.dumps(config.to_dict()), "here", "tiny")
        folder = create_run_folder(resolved, tmp_path / f"run{seed}", ["test"])
        run = TrainingRun(folder, resolved.config, lambda _: None, is_shown=False)
        run.train()
        run.finish()
        runs.append(folder)
    zoo = tmp_path / "zoo"
    card = build("tiny", runs, folder=zoo)
    assert len(card["scores_by_seed"]) == 2
    assert check("zoo/tiny", zoo)["mean_score"] == pytest.approx(
        max(card["scores_by_seed"].values()), abs=1e-4
    )
    other = config_of("dqn", variant="clasica_obligada", total_timesteps=512)
    folder = create_run_folder(
        parse_config(json.dumps(other.to_dict()), "here", "tiny"), tmp_path / "other", ["test"]
    )
    shutil.copy(runs[0] / "evaluation.json", folder)
    with pytest.raises(ZooError, match="only seeds may differ"):
        build("mixed", [runs[0], folder], folder=zoo)


def test_the_command_lists_and_checks(capsys: pytest.CaptureFixture[str]) -> None:
    script.main(["list", "--json"])
    assert len(json.loads(capsys.readouterr().out)["agents"]) == len(zoo_names())
    script.main(["list", "--markdown"])
    assert capsys.readouterr().out == entries.overview_as_markdown()
    script.main(["check", "clasica_obligada-dqn"])
    assert "as its card says" in capsys.readouterr().out
