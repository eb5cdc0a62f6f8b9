"""The plot command: what is in the pictures, what is written, what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from agents.cli import run_command
from agents.evaluation.policy_map import policy_map, policy_map_figure
from agents.registry import make_agent
from generala_env.rules.card import BoxStatus, Card
from generala_env.rules.compiled import TurnBatch, compile_variant
from generala_env.rules.dice import THROWS
from generala_env.rules.names import DiceSkin, Language
from generala_env.rules.variants import get_variant
from generala_env.solver.evaluation import action_regrets
from generala_env.solver.solo import solve_solo
from scripts.plot import main
from tests.agents.evaluation.drawn import assert_all_inside
from tests.agents.written_runs import write_run

SMALL = ["--set", "boxes=[ones, escalera, generala]"]
SCALE = {
    "turn_greedy": {"mean_score": 144.0, "optimality": 0.96},
    "optimal": {"mean_score": 150.0, "optimality": 1.0},
}


def shown(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    for name in result["files"]:
        if name.endswith(".png"):
            with Image.open(name) as image:
                assert image.width > 1000
        else:
            assert ElementTree.parse(name).getroot().tag.endswith("svg")
    assert [Path(name).suffix for name in result["files"]] == [".png", ".svg"]
    return result


def test_learning_curves_stand_beside_the_optimum_and_turn_greedy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for seed in range(3):
        write_run(tmp_path / f"run{seed}", seed=seed, score=147.0 + seed, scale=SCALE)
    for over in ("steps", "minutes"):
        main(["curves", f"{tmp_path}/run*", "--over", over, "--out", str(tmp_path / "out"), "--json"])
        result = shown(capsys)
        assert result["references"] == {"optimum": 100.0, "turn_greedy": 96.0}
        (curve,) = result["curves"].values()
        assert curve["over"] == ([100, 200, 300] if over == "steps" else pytest.approx([1, 2, 3]))
        assert curve["mean"][-1] == pytest.approx(100 * 148 / 150)
        assert curve["band"][0][-1] < curve["mean"][-1] < curve["band"][1][-1]


def test_distributions_and_regrets_are_those_of_the_evaluation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    agents = ["--agent", "turn_greedy", "optimal", *SMALL, "--lang", "es", "--dice", "poker"]
    main(["scores", *agents, "--out", str(tmp_path), "--json"])
    found = shown(capsys)["agents"]
    means = {name: float(np.dot(row["scores"], row["probabilities"])) for name, row in found.items()}
    main(["regret", *agents, "--out", str(tmp_path), "--json"])
    lost = shown(capsys)["agents"]
    assert sum(lost["turn_greedy"]["by_throw"]) == pytest.approx(means["optimal"] - means["turn_greedy"])
    assert sum(lost["optimal"]["by_box"].values()) == pytest.approx(0, abs=1e-9)
    assert set(lost["optimal"]["by_box"]) == {"ones", "escalera", "generala"}


@pytest.mark.parametrize("throw", [1, 2, 3])
def test_a_policy_map_prices_what_the_agent_does(throw: int) -> None:
    agent = make_agent("turn_greedy", "ruibal", instant_win="play_on")
    compiled = agent.compiled
    card = Card(0b1011 | 1 << compiled.num_boxes - 1)
    found = policy_map(agent, card, throw, instant_win="play_on")
    assert found.throws.tolist() == list(range(252))
    count = len(found.throws)
    batch = TurnBatch(
        np.full(count, compiled.index_of(card)),
        found.throws,
        np.full(count, throw),
        np.full(count, throw == 1),
        np.zeros(count, dtype=int),
    )
    masks = compiled.action_masks(batch)
    values = solve_solo(compiled, instant_win="play_on")
    assert found.lost == pytest.approx(action_regrets(values, batch, masks, found.actions))
    assert found.differs.any()
    assert (found.actions != found.best)[found.differs].all()
    optimal = make_agent("optimal", compiled, instant_win="play_on")
    best = policy_map(optimal, card, throw, instant_win="play_on")
    assert not best.differs.any()
    assert (best.actions == found.best).all()


def test_a_policy_map_knows_wins_locked_dice_and_what_was_kept() -> None:
    optimal = make_agent("optimal", "ruibal", instant_win="perfect")
    won = policy_map(optimal, Card.empty(get_variant("ruibal")), instant_win="perfect")
    assert [THROWS[throw] for throw in won.throws[won.actions == -1]] == [(face,) * 5 for face in range(1, 7)]
    locked = compile_variant("doble_fija")
    agent = make_agent("optimal", locked)
    found = policy_map(agent, Card.empty(locked.variant), 2, kept=(5, 5))
    assert all(THROWS[throw].count(5) >= 2 for throw in found.throws)
    assert len(found.throws) == 56
    with pytest.raises(Exception, match="dice lock under doble_fija"):
        policy_map(agent, Card.empty(locked.variant), 2)


@pytest.mark.parametrize("language", list(Language))
def test_nothing_of_a_policy_map_is_cut_off(language: Language) -> None:
    agent = make_agent("turn_greedy", "doble")
    boxes = agent.compiled.variant.boxes
    card = Card(0b11 << len(boxes) - 2)
    assert card.generala is BoxStatus.OPEN
    for kept in (None, (1, 2, 3, 4)):
        found = policy_map(agent, card, 3, kept=kept)
        assert_all_inside(policy_map_figure(found, language=language, skin=DiceSkin.POKER))


def test_the_policy_command_says_what_is_done(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    card = ["--open", "poker", "doble_generala", "--struck", "generala"]
    turn = ["--throw", "3", "--kept", *"6666"]
    main(
        ["policy", "--agent", "optimal", "--variant", "doble", *turn, *card, "--out", str(tmp_path), "--json"]
    )
    result = shown(capsys)
    assert len(result["throws"]) == 6
    assert result["actions"] == result["best"]
    variant = get_variant("doble")
    assert {variant.boxes[action - 31].value for action in result["best"]} <= {"poker", "doble_generala"}


@pytest.mark.parametrize(
    ("argv", "named"),
    [
        (["curves", "no/such/run"], "no/such/run"),
        (["scores", "--agent", "nobody"], "nobody"),
        (["scores", "--agent", "tips", "tips"], "given twice"),
        (["policy", "--agent", "tips", "--open", "poket"], "'poket' is not a box of ruibal"),
        (["policy", "--agent", "tips", "--struck", "poker"], "'poker' is open"),
        (["policy", "--agent", "tips", "--kept", "5"], "nothing is kept before the first throw"),
        (["policy", "--agent", "tips", "--variant", "doble_fija", "--throw", "2"], "dice lock"),
        (["policy", "--agent", "tips", "--throw", "2", "--kept", *"11111"], "at most four"),
        (["policy", "--agent", "tips", "--out", "{file}"], "--out"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], argv: list[str], named: str
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SystemExit) as stop:
        run_command(main, [part.format(file=tmp_path / "file") for part in argv])
    captured = capsys.readouterr()
    assert stop.value.code == 2
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert named in captured.err
