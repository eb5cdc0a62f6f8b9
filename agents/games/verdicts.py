"""A played game judged: what each decision gave away."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from agents.games.advice import Adviser, Choice, worth
from agents.games.record import GameRecord
from generala_env.rules.actions import NUM_KEEP_ACTIONS, action_text
from generala_env.rules.dice import KEEP_OF_MASK, THROW_INDEX
from generala_env.rules.game import GameState

NEGLIGIBLE: Final = 1e-9
"""A cost up to this is none: two choices that are worth the same."""


@dataclass(frozen=True)
class Verdict:
    """What one decision of a recorded game cost.

    Attributes:
        state: The position.
        action: What was done.
        best: What was best.
        cost: What it lost: chance of winning, or points when playing alone.
        choices: Everything that could be done, the best first.
    """

    state: GameState
    action: int
    best: int
    cost: float
    choices: tuple[Choice, ...]

    @property
    def is_optimal(self) -> bool:
        """Whether it cost nothing."""
        return self.cost <= NEGLIGIBLE


def verdict_on(state: GameState, mask: NDArray[np.bool_], action: int, adviser: Adviser) -> Verdict:
    """Judge one decision.

    Args:
        state: The position.
        mask: (num_actions,) bool, what was legal, each choice under its lowest id.
        action: What was done, under any of its ids.
        adviser: Knows what the choices are worth.
    """
    choices = adviser.choices(state, mask)
    done = _canonical(state, action)
    chosen = next(choice for choice in choices if choice.action == done)
    cost = max(0.0, worth(choices[0]) - worth(chosen))
    best = done if cost <= NEGLIGIBLE else choices[0].action
    return Verdict(state, done, best, cost, tuple(choices))


def verdicts_of(record: GameRecord, adviser: Adviser) -> Iterator[Verdict | None]:
    """Judge the decisions of a game in their order; ``None`` where there was no choice."""
    dealt = record.table.deal()
    for action in record.actions:
        state, mask = dealt.state, dealt.action_mask()
        dealt.apply(action)
        yield None if mask.sum() == 1 else verdict_on(state, mask, action, adviser)


def judge(record: GameRecord, adviser: Adviser) -> list[list[Verdict]]:
    """Judge every decision of a recorded game where there was a choice, seat by seat."""
    verdicts: list[list[Verdict]] = [[] for _ in record.table.seats]
    for verdict in verdicts_of(record, adviser):
        if verdict is not None:
            verdicts[verdict.state.current_player].append(verdict)
    return verdicts


def _canonical(state: GameState, action: int) -> int:
    """Return the lowest action id that does the same."""
    if action >= NUM_KEEP_ACTIONS:
        return action
    row = KEEP_OF_MASK[THROW_INDEX[state.turn.dice]]
    return int(np.flatnonzero(row[:NUM_KEEP_ACTIONS] == row[action])[0])


def review_json(record: GameRecord, adviser: Adviser, names: Sequence[str]) -> dict[str, Any]:
    """Return a review as JSON types."""
    variant = record.table.variant
    verdicts = judge(record, adviser)
    return {
        "variant": variant.name,
        "fingerprint": variant.fingerprint,
        "unit": "points" if len(names) == 1 else "probability of winning",
        "is_exact": adviser.is_exact,
        "seats": [
            {
                "name": name,
                "num_decisions": len(own),
                "num_optimal": sum(verdict.is_optimal for verdict in own),
                "total_cost": sum(verdict.cost for verdict in own),
                "mistakes": [
                    {
                        "round": verdict.state.round,
                        "throw": verdict.state.turn.throw,
                        "dice": list(verdict.state.turn.dice),
                        "did": action_text(verdict.action, verdict.state.turn.dice, variant.boxes),
                        "best": action_text(verdict.best, verdict.state.turn.dice, variant.boxes),
                        "cost": verdict.cost,
                    }
                    for verdict in sorted(own, key=lambda verdict: -verdict.cost)
                    if not verdict.is_optimal
                ],
            }
            for name, own in zip(names, verdicts, strict=True)
        ],
    }
