"""Agents judged exactly and by sampling: the two must agree, and luck must be only luck."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from numpy.typing import NDArray

from agents.base import Agent
from agents.evaluation.exact import exact_evaluation, exact_scalars, exact_summary
from agents.evaluation.figures import exact_figures
from agents.evaluation.sampled import (
    confidence_interval,
    evaluate_sampled,
    paired_difference,
    play_games,
    without_luck,
)
from agents.evaluation.traces import trace_game
from agents.players.baselines import RandomAgent, ValueAgent
from agents.registry import make_agent
from generala_env.envs.observation import observation_layout
from generala_env.rules.actions import NUM_KEEP_ACTIONS
from generala_env.rules.compiled import CompiledVariant, InstantWin, compile_variant
from generala_env.rules.dice import THROWS_PER_TURN
from generala_env.rules.variants import get_variant
from generala_env.solver.evaluation import ExactEvaluation, evaluate_policy
from generala_env.solver.solo import solve_solo


class NetworkAgent(Agent):
    """An untrained network: a soft-max policy over the legal actions."""

    def __init__(self, compiled: CompiledVariant, *, seed: int = 0, width: int = 256) -> None:
        self.name = "network"
        self.layout = observation_layout(compiled)
        torch.manual_seed(seed)
        self.network = torch.nn.Sequential(
            torch.nn.Linear(self.layout.size, width),
            torch.nn.ReLU(),
            torch.nn.Linear(width, width),
            torch.nn.ReLU(),
            torch.nn.Linear(width, compiled.num_actions),
        )
        for parameter in self.network.parameters():
            parameter.requires_grad_(False)
            parameter.mul_(3.0)  # so that its preferences differ

    def logits(self, observations: NDArray[Any], action_masks: NDArray[Any]) -> torch.Tensor:
        values = self.network(torch.as_tensor(observations))
        return torch.where(torch.as_tensor(action_masks), values, -torch.inf)

    def act(
        self, observations: NDArray[Any], action_masks: NDArray[Any], *, deterministic: bool = True
    ) -> NDArray[np.int64]:
        logits = self.logits(observations, action_masks)
        if deterministic:
            return np.asarray(logits.argmax(dim=1).numpy(), dtype=np.int64)
        chosen = torch.multinomial(torch.softmax(logits, dim=1), 1)
        return np.asarray(chosen[:, 0].numpy(), dtype=np.int64)

    def action_probabilities(
        self, observations: NDArray[Any], action_masks: NDArray[Any]
    ) -> NDArray[np.float64]:
        return np.asarray(torch.softmax(self.logits(observations, action_masks), dim=1).double().numpy())


class SoftAgent(Agent):
    """Samples actions by a soft-max over optimal values: nearly optimal, and never sure."""

    def __init__(self, compiled: CompiledVariant, temperature: float = 1.0) -> None:
        self.name = "soft"
        self.layout = observation_layout(compiled)
        self.solution = solve_solo(compiled, instant_win="play_on")
        self.temperature = temperature
        self.generator = np.random.default_rng(0)

    def act(
        self, observations: NDArray[Any], action_masks: NDArray[Any], *, deterministic: bool = True
    ) -> NDArray[np.int64]:
        probabilities = self.action_probabilities(observations, action_masks)
        if deterministic:
            return np.asarray(probabilities.argmax(axis=1), dtype=np.int64)
        draws = self.generator.random((len(probabilities), 1))
        # The last probability sum may fall short of 1 by rounding; a draw beyond it takes a legal action.
        chosen = (probabilities.cumsum(axis=1) <= draws).sum(axis=1)
        legal = chosen < probabilities.shape[1]
        return np.asarray(np.where(legal, chosen, probabilities.argmax(axis=1)), dtype=np.int64)

    def action_probabilities(
        self, observations: NDArray[Any], action_masks: NDArray[Any]
    ) -> NDArray[np.float64]:
        q_values = self.solution.q_values_batch(self.layout.decode(observations))
        q_values = np.where(action_masks, q_values, -np.inf)
        weights = np.exp((q_values - q_values.max(axis=1, keepdims=True)) / self.temperature)
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def assert_agree(evaluation: ExactEvaluation, result: dict[str, Any]) -> None:
    """Hold a simulation against the exact figures, at five standard errors."""
    error = evaluation.std_score / np.sqrt(result["num_games"])
    assert abs(result["mean_score"] - evaluation.expected_score) < 5 * error
    assert abs(result["plain_mean_score"] - evaluation.expected_score) < 5 * error
    low, high = result["ci95"]
    assert abs(result["mean_score"] - evaluation.expected_score) < 2.6 * (high - low) / 2 + 1e-9
    # Few games hold an instant win, and those few make much of the variance.
    assert result["std_score"] == pytest.approx(evaluation.std_score, rel=0.15)
    shares = np.sqrt(0.25 / result["num_games"])
    assert abs(result["instant_win_share"] - evaluation.instant_win_probability) < 5 * shares
    assert list(result["struck_by_box"].values()) == pytest.approx(evaluation.box_struck, abs=5 * shares)
    errors = 5 * 40 / np.sqrt(result["num_games"])
    assert list(result["points_by_box"].values()) == pytest.approx(evaluation.box_points, abs=errors)


@pytest.mark.parametrize(
    ("variant", "instant_win", "deterministic"),
    [("ruibal", "perfect", True), ("clasica_fija", "play_on", False)],
)
def test_a_simulation_agrees(variant: str, instant_win: InstantWin, deterministic: bool) -> None:
    agent: Agent
    if deterministic:
        agent = make_agent("turn_greedy", variant)
    else:
        small = get_variant({"base": variant, "boxes": "sixes full generala"})
        agent = SoftAgent(compile_variant(small), 3.0)
    evaluation = exact_evaluation(agent, instant_win=instant_win, deterministic=deterministic)
    result = evaluate_sampled(agent, 20_000, instant_win=instant_win, deterministic=deterministic, seed=5)
    assert_agree(evaluation, result)


@pytest.mark.slow
@pytest.mark.parametrize("deterministic", [True, False])
@pytest.mark.parametrize("variant", ["ruibal", "clasica", "doble_fija", "doble_al_as"])
def test_a_long_simulation_of_a_network_agrees(variant: str, deterministic: bool) -> None:
    agent = NetworkAgent(compile_variant(variant), width=64)
    evaluation = exact_evaluation(agent, deterministic=deterministic)
    result = evaluate_sampled(agent, 200_000, deterministic=deterministic)
    assert_agree(evaluation, result)


def test_a_network_is_evaluated_exactly() -> None:
    agent = NetworkAgent(compile_variant("ruibal"), width=32)
    evaluation = exact_evaluation(agent)
    assert_agree(evaluation, evaluate_sampled(agent, 20_000, seed=9))


def test_the_observation_is_all_an_agent_needs() -> None:
    """Table agents are asked with states; through observations the answer must be the same."""
    agent = make_agent("turn_greedy", "doble_obligada")
    assert isinstance(agent, ValueAgent)

    def through_observations(batch: Any, masks: Any) -> NDArray[np.int64]:
        return agent.act(agent.layout.encode(batch), masks)

    direct = exact_evaluation(agent)
    assert evaluate_policy(agent.compiled, through_observations).expected_score == direct.expected_score


def test_the_random_agent_is_its_probabilities() -> None:
    agent = make_agent("random", "ruibal", seed=1)
    assert isinstance(agent, RandomAgent)
    first, second = (exact_evaluation(agent, instant_win="play_on") for _ in range(2))
    assert first.expected_score == second.expected_score
    assert first.expected_score == pytest.approx(21.0, abs=0.3)


def test_luck_adjusted_scores_keep_the_mean_and_lose_the_variance() -> None:
    agent = make_agent("turn_greedy", "ruibal")
    games = play_games(agent, 20_000, seed=11)
    exact = exact_evaluation(agent).expected_score
    low, high = confidence_interval(games.adjusted_scores, 0.9999)
    assert low < exact < high
    assert high - low < 0.3
    assert games.variance_ratio is not None
    assert games.variance_ratio > 30
    optimal = play_games(make_agent("optimal", "ruibal"), 500, seed=11)
    low, high = confidence_interval(optimal.adjusted_scores)
    assert high - low < 1e-9
    assert optimal.variance_ratio is None
    assert optimal.adjusted_scores == pytest.approx(optimal.optimal_score, abs=1e-9)


@pytest.mark.parametrize("name", ["random", "tips", "turn_greedy", "optimal"])
def test_the_interval_without_luck_is_never_wider_and_comes_first(name: str) -> None:
    result = evaluate_sampled(make_agent(name, "ruibal", seed=0), 2_000, seed=13)
    low, high = result["ci95"]
    plain_low, plain_high = result["plain_ci95"]
    assert high - low < 1.02 * (plain_high - plain_low)
    assert result["optimality"] == result["mean_score"] / result["optimal_score"]
    keys = list(result)
    assert keys.index("mean_score") < keys.index("plain_mean_score")
    if name == "optimal":
        assert result["optimality"] == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("name", ["random", "tips", "turn_greedy", "optimal"])
def test_many_small_samples_have_the_exact_mean(name: str) -> None:
    agent = make_agent(name, "ruibal", seed=0)
    games = play_games(agent, 400 * 25, seed=17)
    scores, luck = games.scores.reshape(400, 25), games.luck.reshape(400, 25)
    means = np.array([without_luck(*sample).mean() for sample in zip(scores, luck, strict=True)])
    error = means.std(ddof=1) / np.sqrt(len(means)) + 1e-9
    assert abs(means.mean() - exact_evaluation(agent).expected_score) < 4 * error


def test_only_folds_keep_the_mean_where_luck_is_skewed() -> None:
    """Fitted on its own games the coefficient goes with their luck, and the mean is wrong."""
    generator = np.random.default_rng(0)
    luck = generator.exponential(size=(4_000, 25)) - 1
    scores = luck**2
    ours = np.array([without_luck(*sample).mean() for sample in zip(scores, luck, strict=True)])
    assert abs(ours.mean() - 1.0) < 4 * ours.std() / np.sqrt(len(ours))
    centred = luck - luck.mean(axis=1, keepdims=True)
    coefficient = (centred * scores).sum(axis=1) / (centred**2).sum(axis=1)
    own = (scores - coefficient[:, None] * luck).mean(axis=1)
    assert abs(own.mean() - 1.0) > 8 * own.std() / np.sqrt(len(own))


def test_few_games_are_left_as_they_are() -> None:
    games = play_games(make_agent("tips", "ruibal"), 8, seed=1)
    assert np.array_equal(games.adjusted_scores, games.scores)


def test_pairs_meet_the_same_dice() -> None:
    greedy = play_games(make_agent("turn_greedy", "ruibal"), 4_000, seed=3)
    tips = play_games(make_agent("tips", "ruibal"), 4_000, seed=3)
    again = paired_difference(greedy.scores, greedy.scores)
    assert (again.mean, again.ci95, again.variance_ratio) == (0.0, (0.0, 0.0), None)
    paired = paired_difference(greedy.scores, tips.scores)
    assert paired.mean == pytest.approx(greedy.scores.mean() - tips.scores.mean())
    assert paired.ci95[0] < paired.mean < paired.ci95[1]
    assert paired.variance_ratio is not None
    assert paired.variance_ratio > 1.2
    with pytest.raises(ValueError, match="paired"):
        paired_difference(greedy.scores, tips.scores[:-1])


@pytest.mark.parametrize("game", [0, 3, 7])
def test_a_trace_is_the_game_that_was_sampled(game: int) -> None:
    agent = make_agent("tips", "clasica")
    games = play_games(agent, 8, seed=4, instant_win="perfect")
    trace = trace_game(agent, seed=4, game=game, instant_win="perfect")
    assert trace.score == games.scores[game]
    assert sum(decision.regret for decision in trace.decisions) == pytest.approx(games.regrets[game])
    closings = [decision for decision in trace.decisions if decision.action >= NUM_KEEP_ACTIONS]
    assert len(closings) == (10 if not trace.is_instant_win else closings[-1].turn + 1)
    assert [decision.turn for decision in closings] == list(range(len(closings)))
    assert trace.decisions[-1].score == games.box_points[game].sum()
    assert {decision.throw_number for decision in trace.decisions} <= set(range(1, THROWS_PER_TURN + 1))


def test_a_trace_ends_with_the_throw_that_wins() -> None:
    agent = make_agent("tips", "ruibal")
    games = play_games(agent, 600, seed=2, instant_win="perfect")
    winner = int(np.flatnonzero(games.instant_wins)[0])
    trace = trace_game(agent, seed=2, game=winner, instant_win="perfect")
    assert trace.is_instant_win
    assert trace.score == games.scores[winner]


def test_the_summary_is_json_and_adds_up() -> None:
    evaluation = exact_evaluation(make_agent("tips", "doble_obligada"))
    summary = json.loads(json.dumps(exact_summary("tips", evaluation, num_blunders=3), allow_nan=False))
    lost = summary["optimal_score"] - summary["mean_score"]
    assert summary["regret"] == pytest.approx(lost, abs=1e-9)
    for key in ("regret_by_box", "regret_by_kind"):
        assert sum(summary[key].values()) == pytest.approx(lost, abs=1e-9)
    for key in ("regret_by_throw", "regret_by_round"):
        assert sum(summary[key]) == pytest.approx(lost, abs=1e-9)
    assert len(summary["blunders"]) == 3
    assert {"dice", "action", "best_action", "open_boxes", "cost"} <= summary["blunders"][0].keys()
    assert sum(summary["score_probabilities"]) == pytest.approx(1.0)


def test_a_training_curve_shows_scalars_and_figures() -> None:
    evaluation = exact_evaluation(make_agent("turn_greedy", "ruibal"))
    scalars = exact_scalars(evaluation)
    assert scalars["eval/mean_score"] == evaluation.expected_score
    assert scalars["eval/optimality"] == evaluation.optimality
    by_throw = sum(scalars[f"regret_by_throw/{number}"] for number in (1, 2, 3))
    assert by_throw == pytest.approx(scalars["eval/regret"])
    assert scalars["struck/generala"] == evaluation.box_struck[-1]
    figures = exact_figures(evaluation, name="tips")
    assert set(figures) == {"figures/score_distribution", "figures/regret_by_box_and_round"}
    assert all(isinstance(figure, Figure) for figure in figures.values())
    (axes, _) = figures["figures/regret_by_box_and_round"].axes
    drawn = np.asarray(axes.images[0].get_array())
    assert drawn == pytest.approx(evaluation.regret_by_box[:-1])
