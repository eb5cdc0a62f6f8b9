"""The card learners with SB3's face: schedules, predictions, saving, agents, exact scores, resuming."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agents.base import AgentRequest
from agents.evaluation.exact import exact_evaluation
from agents.learning.cards.algorithms import CardAlgorithm, CardDQN, CardPPO, CardTable
from agents.learning.cards.play import CardPlay
from agents.learning.cards.policies import CardAgent
from agents.learning.cards.tables import CLOSED, afterstate_tables
from agents.learning.learners import make_learner
from agents.learning.networks import MissingMaskError
from agents.learning.trained import load_agent
from agents.learning.vec_env import GeneralaVecEnv
from agents.runs.learner_state import learner_state, set_learner_state, set_weights, weights_of
from agents.runs.training import TrainingRun
from agents.saving.agent_files import weights_hash
from generala_env.rules.compiled import InstantWin, compile_variant
from generala_env.rules.variants import PRESETS
from generala_env.solver.solo import solve_solo
from tests.agents.card_configs import config_of

ALGORITHMS: dict[str, type[CardAlgorithm]] = {"ppo": CardPPO, "dqn": CardDQN, "tabular": CardTable}


def make(name: str, variant: str = "ruibal", *, instant_win: InstantWin = "play_on", seed: int = 0) -> Any:
    env = GeneralaVecEnv(64, variant, instant_win=instant_win, reward_scale=0.05)
    kind: Any = ALGORITHMS[name]
    options: dict[str, Any] = {"batch_size": 256} if name == "ppo" else {}
    return kind("CardPolicy", env, seed=seed, policy_kwargs={"net_arch": [16]}, **options)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("instant_win", ["play_on", "perfect"])
def test_outputs_of_the_solver_play_and_score_as_the_optimum(preset: str, instant_win: InstantWin) -> None:
    """Whatever is true of all cards at once: rows, columns, points, wins and locked dice."""
    compiled = compile_variant(preset)
    solution = solve_solo(compiled, instant_win=instant_win)
    rows = afterstate_tables(compiled, instant_win).num_rows
    keeps = solution.class_keep_values[:rows].reshape(rows, CLOSED)
    outputs = np.concatenate([keeps, solution.class_values[:rows, None]], axis=1).astype(np.float32)
    play = CardPlay(compiled, outputs)
    assert play.exact_score(instant_win) == pytest.approx(solution.expected_score, abs=1e-6)
    assert max(map(abs, play.value_errors(instant_win).values())) < 1e-4
    worse = CardPlay(
        compiled, outputs + np.random.default_rng(0).normal(0, 5, outputs.shape).astype(np.float32)
    )
    assert worse.exact_score(instant_win) < solution.expected_score - 0.5
    assert worse.value_errors(instant_win)["keep_rms_error"] == pytest.approx(5.0, rel=0.05)


# A table has many zeros at first, and the two break ties in other orders.
@pytest.mark.parametrize("name", ["ppo", "dqn"])
@pytest.mark.parametrize("preset", ["ruibal", "doble_obligada", "clasica_fija"])
def test_the_fast_score_is_the_exact_evaluation(name: str, preset: str) -> None:
    model = make(name, preset, instant_win="perfect")
    model.learn(20 * 512)
    play = model.learner.play()
    agent = CardAgent("one", model.env.layout, play)
    found = exact_evaluation(agent, instant_win="perfect", num_blunders=0)
    assert play.exact_score("perfect") == pytest.approx(found.expected_score, abs=1e-6)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_predict_has_the_face_of_sb3(name: str) -> None:
    model = make(name)
    model.learn(2 * 512)
    env = model.env
    observations, masks = env.reset(), env.action_masks()
    actions, state = model.predict(observations, deterministic=True, action_masks=masks)
    assert actions.shape == (64,)
    assert state is None
    assert masks[np.arange(64), actions].all()
    single, _ = model.predict(observations[5], deterministic=True, action_masks=masks[5])
    assert np.shape(single) == ()
    assert single == actions[5]
    with pytest.raises(MissingMaskError, match="action_masks"):
        model.predict(observations)
    drawn = np.stack([model.predict(observations, action_masks=masks)[0] for _ in range(20)])
    assert masks[np.arange(64), drawn].all()
    assert (drawn != drawn[0]).any() == (name == "ppo"), "an actor samples, values are greedy"


def test_an_actor_draws_by_its_probabilities() -> None:
    model = make("ppo")
    model.learn(20 * 512)
    agent = CardAgent("one", model.env.layout, model.learner.play(), seed=1)
    observations = np.repeat(model.env.reset()[:1], 20_000, axis=0)
    masks = np.repeat(model.env.action_masks()[:1], 20_000, axis=0)
    chances = agent.action_probabilities(observations[:1], masks[:1])[0]
    assert chances.sum() == pytest.approx(1.0)
    counts = np.bincount(agent.act(observations, masks, deterministic=False), minlength=len(chances))
    assert abs(counts / 20_000 - chances).max() < 0.015
    assert agent.act(observations[:1], masks[:1])[0] == chances.argmax()


@pytest.mark.parametrize("name", ALGORITHMS)
def test_a_learner_that_is_put_back_goes_on_bit_for_bit(name: str) -> None:
    first = make_learner(config_of(name))
    first.learn(6 * 512)
    state, weights = copy.deepcopy(learner_state(first)), weights_of(first)
    first.learn(6 * 512, reset_num_timesteps=False)
    second = make_learner(config_of(name, seed=9))
    second.learn(512)
    set_weights(second, weights)
    set_learner_state(second, state)
    assert second.num_timesteps == 6 * 512
    second.learn(6 * 512, reset_num_timesteps=False)
    assert weights_hash(weights_of(first)) == weights_hash(weights_of(second))


@pytest.mark.parametrize("name", ALGORITHMS)
def test_the_seed_decides_everything(name: str) -> None:
    hashes = []
    for seed in (0, 0, 1):
        model = make_learner(config_of(name, seed=seed))
        model.learn(3 * 512)
        hashes.append(weights_hash(weights_of(model)))
    assert hashes[0] == hashes[1] != hashes[2]


@pytest.mark.parametrize("name", ["ppo", "dqn"])
def test_sb3s_own_files_keep_what_was_learned(name: str, tmp_path: Path) -> None:
    model = make(name)
    model.learn(4 * 512)
    model.save(tmp_path / "model.zip")
    loaded: Any = ALGORITHMS[name].load(tmp_path / "model.zip", env=model.env)
    assert np.array_equal(loaded.learner.play().outputs, model.learner.play().outputs)
    loaded.learn(2 * 512)


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize("preset", ["ruibal", "doble_fija"])
def test_a_run_is_judged_exactly_and_its_agent_loads(name: str, preset: str, tmp_path: Path) -> None:
    said: list[str] = []
    config = config_of(name, variant=preset)
    run = TrainingRun(tmp_path, config, said.append, is_shown=False)
    run.train()
    result = run.finish()
    assert result["exact"]
    agent: Any = load_agent(tmp_path, AgentRequest(compile_variant(preset)))
    assert agent.play.exact_score() == pytest.approx(result["mean_score"], abs=1e-6)
    assert result["optimality"] > 0.2
