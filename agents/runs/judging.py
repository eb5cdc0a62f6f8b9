"""How a run judges its agent: in the loop, to draw the curve and choose the best, and at the end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from agents.base import Agent
from agents.config.model import EvaluationConfig
from agents.evaluation.exact import exact_evaluation, exact_scalars, exact_summary
from agents.evaluation.figures import exact_figures
from agents.evaluation.sampled import (
    EVALUATION_SEED,
    SampledGames,
    confidence_interval,
    evaluate_sampled,
    play_games,
)
from agents.registry import make_agent
from generala_env.rules.compiled import CompiledVariant, InstantWin
from generala_env.solver.evaluation import evaluate_optimal
from generala_env.solver.solo import solve_solo

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SELECTION_SEED: Final = 1_000_000
"""Seed of the dice of sampled evaluations in the loop, which choose the best agent; what is
reported at the end is played on the dice of ``EVALUATION_SEED``."""

SCALE_AGENTS: Final = ("turn_greedy",)
"""Who is evaluated beside the trained agent, for scale."""


@dataclass(frozen=True)
class Judgement:
    """What an evaluation in the loop found.

    Attributes:
        exact: Whether the mean is the exact expected score.
        mean_score: Mean final score.
        ci95: Its 95 % interval; the mean twice where it is exact.
        optimality: The mean as a share of the optimum.
        scalars: Values by TensorBoard tag.
        draw_figures: Draws figures, by TensorBoard tag.
    """

    exact: bool
    mean_score: float
    ci95: tuple[float, float]
    optimality: float
    scalars: dict[str, float]
    draw_figures: Callable[[], dict[str, Figure]] = dict

    def summary(self) -> dict[str, Any]:
        """Return what the learning curve on disk says, as JSON types."""
        return {
            "exact": self.exact,
            "mean_score": self.mean_score,
            "ci95": list(self.ci95),
            "optimality": self.optimality,
        }


@dataclass(frozen=True)
class Judge:
    """Evaluates agents of one game, always on their best actions and under the masks.

    Attributes:
        compiled: The tables of the variant.
        instant_win: How a served Generala that wins is treated.
        config: The mode and the numbers of games.
        asks_states: Whether the agent decides from states, so that asking it everything is fast.
    """

    compiled: CompiledVariant
    instant_win: InstantWin
    config: EvaluationConfig
    asks_states: bool = False

    @property
    def is_exact(self) -> bool:
        """Whether evaluations are exact.

        ``auto`` is exact unless kept dice lock and networks read observations: the dice set aside
        multiply the states, and an exact evaluation takes minutes instead of seconds.
        """
        if self.config.mode == "auto":
            return self.asks_states or not self.compiled.variant.is_locked
        return self.config.mode == "exact"

    @cached_property
    def _optimal_games(self) -> SampledGames:
        """Games of the optimum on the dice of the loop's sampled evaluations."""
        optimal = make_agent("optimal", self.compiled, instant_win=self.instant_win)
        return play_games(optimal, self.config.games, seed=SELECTION_SEED, instant_win=self.instant_win)

    def prepare(self) -> None:
        """Compute what all evaluations share, so that none of them is charged for it."""
        solve_solo(self.compiled, instant_win=self.instant_win)
        if self.is_exact:
            evaluate_optimal(self.compiled, self.instant_win)
        else:
            _ = self._optimal_games

    def judge(self, agent: Agent) -> Judgement:
        """Evaluate an agent in the loop."""
        if not self.is_exact:
            return self._judge_sampled(agent)
        found = exact_evaluation(agent, instant_win=self.instant_win, num_blunders=0)
        mean = found.expected_score
        return Judgement(
            True,
            mean,
            (mean, mean),
            found.optimality,
            exact_scalars(found),
            lambda: exact_figures(found, name=agent.name),
        )

    def _judge_sampled(self, agent: Agent) -> Judgement:
        games = play_games(agent, self.config.games, seed=SELECTION_SEED, instant_win=self.instant_win)
        optimal = self._optimal_games
        adjusted = games.adjusted_scores
        mean = float(adjusted.mean())
        low, high = confidence_interval(adjusted)
        optimality = mean / games.optimal_score
        # Both met the same dice, so the difference is steadier than either mean.
        lost = (optimal.box_points - games.box_points).mean(axis=0)
        scalars = {
            "eval/mean_score": mean,
            "eval/mean_score_ci95_low": low,
            "eval/mean_score_ci95_high": high,
            "eval/optimality": optimality,
            "eval/lost_points": games.optimal_score - mean,
            "eval/plain_mean_score": float(games.scores.mean()),
            "eval/instant_win_share": float(games.instant_wins.mean()),
        }
        for index, box in enumerate(self.compiled.variant.boxes):
            scalars[f"lost_points_by_box/{box.value}"] = float(lost[index])
            scalars[f"struck/{box.value}"] = float(games.struck[:, index].mean())
            scalars[f"points/{box.value}"] = float(games.box_points[:, index].mean())
        return Judgement(False, mean, (low, high), optimality, scalars)

    def final(self, agent: Agent, *, progress: bool = False) -> dict[str, Any]:
        """Evaluate an agent for the record, and others beside it for scale.

        Returns:
            JSON types: the agent's evaluation, with ``scale`` holding that of the others.
        """
        others = [make_agent(name, self.compiled, instant_win=self.instant_win) for name in SCALE_AGENTS]
        results = [self._final(one, progress=progress) for one in (agent, *others)]
        keys = ("mean_score", "ci95", "optimality")
        return {
            **results[0],
            "scale": {
                **{result["agent"]: {key: result[key] for key in keys} for result in results[1:]},
                "optimal": {"mean_score": results[0]["optimal_score"], "optimality": 1.0},
            },
        }

    def _final(self, agent: Agent, *, progress: bool) -> dict[str, Any]:
        if self.is_exact:
            found = exact_evaluation(agent, instant_win=self.instant_win, progress=progress)
            return exact_summary(agent.name, found)
        sampled = evaluate_sampled(
            agent,
            self.config.final_games,
            seed=EVALUATION_SEED,
            instant_win=self.instant_win,
            progress=progress,
        )
        return {**sampled, "exact": False}
