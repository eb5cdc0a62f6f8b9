"""The exact score of an agent: asked about every decision that its play can meet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.base import Agent, ask_alone
from generala_env.rules.actions import action_text
from generala_env.rules.compiled import DEFAULT_INSTANT_WIN, InstantWin, TurnBatch, instant_win_that_pays
from generala_env.rules.dice import KEEPS, THROWS
from generala_env.solver.evaluation import (
    DEFAULT_BLUNDERS,
    MISTAKE_KINDS,
    Blunder,
    ExactEvaluation,
    evaluate_optimal,
    evaluate_policy,
)


@dataclass(frozen=True)
class AgentPolicy:
    """An agent as the function that exact evaluation asks; a ``Policy``.

    Attributes:
        agent: Who decides.
        deterministic: Its best actions; otherwise the probabilities with which it samples.
    """

    agent: Agent
    deterministic: bool = True

    @property
    def name(self) -> str:
        """What the agent is called."""
        return self.agent.name

    def __call__(self, batch: TurnBatch, action_masks: NDArray[np.bool_]) -> NDArray[Any]:
        """Answer decisions with actions, or with probabilities where the agent samples."""
        if self.deterministic and not self.agent.always_samples:
            return ask_alone(self.agent, batch, action_masks)
        return self.agent.action_probabilities(self.agent.layout.encode(batch), action_masks)


def exact_evaluation(
    agent: Agent,
    *,
    instant_win: InstantWin = DEFAULT_INSTANT_WIN,
    deterministic: bool = True,
    num_blunders: int = DEFAULT_BLUNDERS,
    progress: bool = False,
) -> ExactEvaluation:
    """Evaluate an agent of the one-player game exactly; see ``evaluate_policy``.

    The agent must be a function of the observation: same observation and mask, same answer. A sample of
    decisions is asked about again to make sure of it.

    Args:
        agent: Who plays.
        instant_win: How a served Generala that wins is treated.
        deterministic: Take the agent's best actions instead of the probabilities it samples with.
        num_blunders: How many of its worst decisions to list.
        progress: Show a progress bar.

    Raises:
        AnswerError: An answer of the agent is not legal, is none, or is another when asked for again.
    """
    return evaluate_policy(
        agent.compiled,
        AgentPolicy(agent, deterministic),
        instant_win=instant_win,
        num_blunders=num_blunders,
        progress=agent.name if progress else None,
    )


def exact_summary(
    name: str,
    evaluation: ExactEvaluation,
    *,
    deterministic: bool = True,
    num_blunders: int = DEFAULT_BLUNDERS,
) -> dict[str, Any]:
    """Return an exact evaluation as JSON types, with the keys of ``evaluate_sampled`` and more.

    Args:
        name: The agent's name.
        evaluation: Its evaluation.
        deterministic: Whether its best actions were evaluated.
        num_blunders: How many of its worst decisions to list.
    """
    variant = evaluation.compiled.variant
    boxes = [box.value for box in variant.boxes]

    def by_box(values: NDArray[np.float64]) -> dict[str, float]:
        return dict(zip(boxes, values.tolist(), strict=True))

    return {
        "agent": name,
        "variant": variant.name,
        "fingerprint": variant.fingerprint,
        "instant_win_points": evaluation.instant_win_points,
        "deterministic": deterministic,
        "exact": True,
        "num_games": 0,
        "mean_score": evaluation.expected_score,
        "ci95": [evaluation.expected_score, evaluation.expected_score],
        "std_score": evaluation.std_score,
        "optimal_score": evaluation.optimal_score,
        "optimality": evaluation.optimality,
        "quantiles": {f"{q:g}": evaluation.quantile(q) for q in (0.05, 0.25, 0.5, 0.75, 0.95)},
        "instant_win_share": evaluation.instant_win_probability,
        "points_by_box": by_box(evaluation.box_points),
        "scored_by_box": by_box(evaluation.box_scored),
        "struck_by_box": by_box(evaluation.box_struck),
        "regret": evaluation.regret,
        "regret_by_throw": evaluation.regret_by_throw.tolist(),
        "regret_by_round": evaluation.regret_by_round.tolist(),
        "regret_by_kind": dict(zip(MISTAKE_KINDS, evaluation.regret_by_kind.tolist(), strict=True)),
        "mistakes_by_kind": dict(zip(MISTAKE_KINDS, evaluation.mistakes_by_kind.tolist(), strict=True)),
        "regret_while_box_open": by_box(evaluation.regret_by_open[:, 1]),
        "regret_while_box_closed": by_box(evaluation.regret_by_open[:, 0]),
        "regret_by_box": {
            **by_box(evaluation.regret_by_box[:-1].sum(axis=1)),
            "instant_win": float(evaluation.regret_by_box[-1].sum()),
        },
        "blunders": [blunder_summary(evaluation, blunder) for blunder in evaluation.blunders[:num_blunders]],
        "gravest": [blunder_summary(evaluation, blunder) for blunder in evaluation.gravest[:num_blunders]],
        "scores": evaluation.scores.tolist(),
        "score_probabilities": evaluation.score_probabilities.tolist(),
        "num_states": evaluation.num_states,
        # An illegal answer is an error, so that there is none in what has an evaluation.
        "illegal_actions": 0,
    }


def blunder_summary(evaluation: ExactEvaluation, blunder: Blunder) -> dict[str, Any]:
    """Return a blunder as JSON types: the position, what was done, what was right, the cost.

    A blunder is one decision; ``regret`` is lost each time it is met so, ``cost`` in an average game. All
    that tells decisions apart is in it: dice, throw, served or not, locked dice, open boxes, and what the
    rules remember of closed ones.
    """
    compiled = evaluation.compiled
    boxes = compiled.variant.boxes
    opened = int(compiled.card_open[blunder.card])
    dice = THROWS[blunder.throw]
    return {
        "dice": list(dice),
        "throw": blunder.throw_number,
        "served": blunder.served,
        "locked": list(KEEPS[blunder.kept]),
        "open_boxes": [box.value for i, box in enumerate(boxes) if opened >> i & 1],
        "remembered": list(compiled.card(blunder.card).remembered()),
        "action": action_text(blunder.action, dice, boxes),
        "best_action": action_text(blunder.best_action, dice, boxes),
        "regret": blunder.regret,
        "frequency": blunder.frequency,
        "cost": blunder.cost,
    }


def exact_scalars(evaluation: ExactEvaluation) -> dict[str, float]:
    """Return what a training curve shows of an exact evaluation, by TensorBoard tag."""
    scalars = {
        "eval/mean_score": evaluation.expected_score,
        "eval/optimality": evaluation.optimality,
        "eval/regret": evaluation.regret,
        "eval/std_score": evaluation.std_score,
        "eval/instant_win_share": evaluation.instant_win_probability,
    }
    for index, lost in enumerate(evaluation.regret_by_throw.tolist(), start=1):
        scalars[f"regret_by_throw/{index}"] = lost
    for kind, lost in zip(MISTAKE_KINDS, evaluation.regret_by_kind.tolist(), strict=True):
        scalars[f"regret_by_kind/{kind}"] = lost
    for index, box in enumerate(evaluation.compiled.variant.boxes):
        scalars[f"regret_by_box/{box.value}"] = float(evaluation.regret_by_box[index].sum())
        scalars[f"struck/{box.value}"] = float(evaluation.box_struck[index])
        scalars[f"points/{box.value}"] = float(evaluation.box_points[index])
    return scalars


def optimal_evaluation(evaluation: ExactEvaluation) -> ExactEvaluation:
    """Return the exact evaluation of optimal play of the same game (computed once per game)."""
    return evaluate_optimal(evaluation.compiled, instant_win_that_pays(evaluation.instant_win_points))
