"""Learners: the same from the same seed, resumed exactly, and better with practice."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from agents.learning.cards.dqn import QLearner, QSettings
from agents.learning.cards.learner import CardLearner
from agents.learning.cards.networks import CardNetworkSettings
from agents.learning.cards.ppo import PPOLearner, PPOSettings
from agents.learning.cards.tabular import TabularLearner, TabularSettings
from generala_env.rules.compiled import TurnBatch

SMALL = CardNetworkSettings(widths=(16, 16))
KINDS = ["dqn", "ppo", "tabular"]


def make(kind: str, *, variant: str = "doble_fija", seed: int = 0, num_games: int = 64) -> CardLearner:
    if kind == "dqn":
        dqn = QSettings(network=SMALL, num_games=num_games, trace=0.3)
        return QLearner(variant, dqn, instant_win="perfect", seed=seed)
    if kind == "ppo":
        ppo = PPOSettings(actor=SMALL, critic=SMALL, num_games=num_games, num_epochs=2, trace=0.3)
        return PPOLearner(variant, ppo, instant_win="perfect", seed=seed)
    tabular = TabularSettings(num_games=num_games)
    return TabularLearner(variant, tabular, instant_win="perfect", seed=seed)


def run(learner: CardLearner, first: int, last: int) -> list[dict[str, float]]:
    return [learner.collect_and_learn_iteration(1.0 - step / 10) for step in range(first, last)]


def assert_equal(left: dict[str, Any], right: dict[str, Any]) -> None:
    assert left.keys() == right.keys()
    for name, value in left.items():
        if isinstance(value, dict):
            assert_equal(value, right[name])
        else:
            assert value.dtype == right[name].dtype
            np.testing.assert_array_equal(value, right[name])


@pytest.mark.parametrize("kind", KINDS)
def test_a_resumed_run_is_bit_for_bit_the_run_that_never_stopped(kind: str) -> None:
    whole = make(kind)
    run(whole, 0, 4)
    saved = whole.state_dict()
    logs = run(whole, 4, 9)
    resumed = make(kind, seed=99)
    resumed.load_state_dict(saved)
    assert run(resumed, 4, 9) == logs
    assert_equal(resumed.state_dict(), whole.state_dict())
    np.testing.assert_array_equal(resumed.play().outputs, whole.play().outputs)


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_state_does_not_change_as_the_run_goes_on(kind: str) -> None:
    learner = make(kind)
    run(learner, 0, 2)
    saved, again = learner.state_dict(), learner.state_dict()
    run(learner, 2, 4)
    assert_equal(saved, again)


@pytest.mark.parametrize("kind", KINDS)
def test_the_seed_decides_everything(kind: str) -> None:
    first, same, other = make(kind, seed=5), make(kind, seed=5), make(kind, seed=6)
    for learner in (first, same, other):
        run(learner, 0, 3)
    assert_equal(first.state_dict(), same.state_dict())
    assert not np.array_equal(first.play().outputs, other.play().outputs)


@pytest.mark.parametrize("kind", KINDS)
def test_counters_count(kind: str) -> None:
    learner = make(kind, variant="ruibal")
    run(learner, 0, 10)
    assert learner.num_iterations == 10
    assert learner.num_decisions == 10 * 64 * 8
    assert learner.num_finished > 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_forced_card_is_learned_in_seconds(kind: str) -> None:
    learner = make(kind, variant="clasica_obligada", num_games=512)
    before = learner.play().exact_score("perfect")
    for step in range(300):
        learner.collect_and_learn_iteration(1.0 - step / 300)
    # The optimum is 78.2; what is left after so few steps is a matter of luck.
    assert learner.play().exact_score("perfect") > before + 15.0


def test_probabilities_are_those_of_allowed_actions() -> None:
    learner = make("ppo")
    assert isinstance(learner, PPOLearner)
    run(learner, 0, 3)
    decisions = learner.decisions
    number, kept = decisions.number.ravel(), decisions.kept.ravel()
    states = TurnBatch(
        learner.compiled.card_of_class[decisions.card.ravel()],
        decisions.throw.ravel(),
        number,
        learner.compiled.is_served[number - 1, (kept == 0).astype(int)],
        kept,
    )
    masks = learner.compiled.action_masks(states)
    chances = learner.play().probabilities(states, masks)
    assert (chances[~masks] == 0).all()
    np.testing.assert_allclose(chances.sum(axis=1), 1.0, rtol=1e-5)
    best = learner.play().best_actions(states, masks)
    assert masks[np.arange(len(masks)), best].all()
    np.testing.assert_array_equal(chances.argmax(axis=1), best)
