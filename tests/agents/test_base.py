"""What agents take and what they are refused: single decisions, lists, and answers against the masks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from agents.base import Agent, ask_alone
from agents.errors import AgentError
from agents.evaluation.exact import exact_evaluation
from agents.evaluation.sampled import play_games
from agents.games.record import Table
from agents.games.seating import Seating
from agents.registry import make_agent
from generala_env.envs.dealing import DealtGame
from generala_env.envs.observation import observation_layout
from generala_env.envs.solo import GeneralaEnv
from generala_env.envs.vector import GeneralaVectorEnv
from generala_env.rules.answers import AnswerError
from generala_env.rules.compiled import CompiledVariant, TurnBatch, compile_variant
from generala_env.rules.game import IllegalActionError
from generala_env.rules.variants import get_variant

NAMES = ("random", "turn_greedy", "tips", "optimal")


@pytest.fixture(scope="module")
def asked() -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    env = GeneralaVectorEnv(5, "ruibal")
    observations, _ = env.reset(seed=1)
    return observations.copy(), env.action_masks().copy()


class Reckless(Agent):
    """Answers with a function of the mask alone."""

    name = "reckless"

    def __init__(self, compiled: CompiledVariant, choose: Callable[[NDArray[np.bool_]], Any]) -> None:
        self.layout = observation_layout(compiled)
        self.choose = choose

    def act(
        self, observations: NDArray[Any], action_masks: NDArray[Any], *, deterministic: bool = True
    ) -> NDArray[np.int64]:
        answer: NDArray[np.int64] = self.choose(action_masks)
        return answer


@pytest.mark.parametrize("name", NAMES)
def test_one_observation_has_one_action_as_in_a_batch(name: str, asked: tuple[Any, Any]) -> None:
    observations, masks = asked
    agent = make_agent(name, "ruibal", seed=0)
    for row in range(len(masks)):
        agent.reset(row)
        in_batch = agent.act(observations[row : row + 1], masks[row : row + 1])
        assert in_batch.shape == (1,)
        for single in (
            (observations[row], masks[row]),
            (observations[row].tolist(), masks[row].astype(np.int8).tolist()),
            (torch.as_tensor(observations[row]), masks[row : row + 1]),
        ):
            agent.reset(row)
            action = agent.act(*single)
            assert action.shape == ()
            assert action == in_batch[0]
        shares = agent.action_probabilities(observations[row], masks[row])
        assert shares.shape == (41,)
        assert shares.sum() == pytest.approx(1)


def test_the_loop_of_a_single_environment_plays_a_game() -> None:
    env = GeneralaEnv("ruibal")
    agent = make_agent("turn_greedy", "ruibal")
    observation, info = env.reset(seed=0)
    terminated, steps = False, 0
    while not terminated:
        action = agent.act(observation, info["action_mask"])
        observation, _, terminated, _, info = env.step(int(action))
        steps += 1
    assert steps >= 10


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda obs, _: (obs, None), "action_masks: needed"),
        (lambda obs, masks: (obs[:, :-1], masks), r"observations: float32 of shape \(5, "),
        (lambda obs, masks: (obs[None], masks), r"observations: float32 of shape \(1, 5, "),
        (lambda obs, masks: (obs * np.nan, masks), "observations: not all numbers are finite"),
        (lambda obs, masks: ({"observation": obs}, masks), "observations: a mapping with 'observation'"),
        (lambda obs, masks: ([obs[0], [1.0]], masks), "no arrays"),
        (lambda obs, masks: (obs.astype(str), masks), "observations: <U"),
        (lambda obs, masks: (obs, masks[:-1]), r"action_masks: shape \(4, 41\) is not \(5, 41\)"),
        (lambda obs, masks: (obs, masks[0]), r"action_masks: shape \(41,\) is not \(5, 41\)"),
        (lambda obs, masks: (obs, masks * 0.5), "not all 0 or 1"),
        (lambda obs, masks: (obs, masks & (np.arange(5) != 3)[:, None]), "row 3 allows nothing"),
    ],
)
def test_what_is_no_decision_is_refused_by_name(
    name: str, change: Callable[..., Any], named: str, asked: tuple[Any, Any]
) -> None:
    agent = make_agent(name, "ruibal")
    for method in (agent.act, agent.action_probabilities):
        with pytest.raises(AgentError, match=f"{name}: .*{named}"):
            method(*change(*asked))


def ignores(masks: NDArray[np.bool_]) -> NDArray[np.int64]:
    return np.full(len(masks), 40, dtype=np.int64)


def cheats(masks: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Allow everything in the masks it was given, then take what was not allowed."""
    action = np.asarray((~masks).argmax(axis=1))
    masks[:] = True
    return action


@pytest.mark.parametrize(
    ("choose", "error"),
    [
        (ignores, IllegalActionError),
        (cheats, IllegalActionError),
        (lambda masks: -masks.argmax(axis=1) - 1, IllegalActionError),
        (lambda masks: np.full((len(masks), 33), 1), AnswerError),
        (lambda masks: masks.argmax(axis=1).astype(float), AnswerError),
        (lambda masks: masks.argmax(axis=1)[:-1], AnswerError),
    ],
)
def test_an_agent_that_answers_against_its_mask_has_no_score(
    choose: Callable[[Any], Any], error: type[Exception]
) -> None:
    agent = Reckless(compile_variant("ruibal"), choose)
    for use in (exact_evaluation, lambda agent: play_games(agent, 20)):
        with pytest.raises(error, match=r"^reckless: "):
            use(agent)


def test_agents_are_refused_at_tables_of_one_too(monkeypatch: pytest.MonkeyPatch) -> None:
    variant = get_variant("ruibal")
    seating = Seating(Table(variant, ("tips",), 1))
    monkeypatch.setattr(seating, "agents", [Reckless(seating.compiled, cheats)])
    dealt = DealtGame(variant, 1)
    dealt.start((1, 1))
    with pytest.raises(IllegalActionError, match="reckless: action"):
        seating.decide(dealt.state, dealt.action_mask())


class Drawing(Agent):
    """Draws its actions whatever it is asked for."""

    name = "drawing"

    def __init__(self, compiled: CompiledVariant) -> None:
        self.layout = observation_layout(compiled)
        self.draws = np.random.default_rng(0)

    def act(
        self, observations: NDArray[Any], action_masks: NDArray[Any], *, deterministic: bool = True
    ) -> NDArray[np.int64]:
        return np.asarray(np.where(action_masks, self.draws.random(action_masks.shape), -1).argmax(axis=1))


class Honest(Drawing):
    """Draws, and says with which probabilities."""

    always_samples = True

    def action_probabilities(
        self, observations: NDArray[Any], action_masks: NDArray[Any]
    ) -> NDArray[np.float64]:
        return np.asarray(action_masks / action_masks.sum(axis=1, keepdims=True))


def test_exact_evaluation_refuses_an_agent_that_draws_unless_it_gives_its_probabilities() -> None:
    compiled = compile_variant("ruibal")
    with pytest.raises(AnswerError, match=r"drawing: .*nothing but the decision.*action_probabilities"):
        exact_evaluation(Drawing(compiled))
    honest = exact_evaluation(Honest(compiled))
    assert honest.expected_score == exact_evaluation(make_agent("random", compiled)).expected_score
    # Sampled games need no function of the decision.
    assert len(play_games(Drawing(compiled), 20).scores) == 20


def test_agents_are_asked_with_states_or_through_what_they_read() -> None:
    compiled = compile_variant("ruibal")
    batch = TurnBatch(
        np.zeros(2, int), np.array([3, 250]), np.ones(2, int), np.ones(2, bool), np.zeros(2, int)
    )
    masks = compiled.action_masks(batch)
    agent = make_agent("turn_greedy", compiled)
    through = agent.act(agent.layout.encode(batch), masks)
    assert np.array_equal(ask_alone(agent, batch, masks), through)
