"""The deal of the day: the same dice for everybody, scored against the optimum."""

from __future__ import annotations

import datetime
import hashlib
from typing import Any

from agents.games.advice import Adviser
from agents.games.record import AT_TABLE, GameRecord, Table
from agents.games.seating import PERSON, Seating
from agents.games.verdicts import judge
from generala_env.envs.dealing import DealtGame
from generala_env.rules.variants import Variant
from generala_env.solver.solo import SoloSolution, solve_solo

SEED_BYTES = 6
"""So much of the hash is the seed: JSON numbers are exact up to 53 bits."""


def daily_table(day: datetime.date, variant: Variant) -> Table:
    """Return the table of a day: one person alone, with dice that follow from the day and the rules."""
    digest = hashlib.sha256(f"{day.isoformat()}:{variant.fingerprint}".encode()).digest()
    return Table(variant, (PERSON,), int.from_bytes(digest[:SEED_BYTES], "big"))


def _worth(dealt: DealtGame, solution: SoloSolution) -> float:
    """Return the points of a finished game; a served Generala that ends it pays the perfect score on top."""
    won = solution.perfect_score if dealt.state.is_instant_win else 0
    return float(dealt.state.scores[0] + won)


def daily_result(record: GameRecord, adviser: Adviser) -> dict[str, Any]:
    """Score a finished deal.

    What was scored is what optimal play expects, less what the choices gave away, plus luck; so the
    luck is what is left over, and two players of one deal can be compared without it.

    Returns:
        ``score`` and, with the same dice, ``optimal_score``, points; ``expected``, what optimal play
        expects before any dice fall; ``regret``, the sum of what each choice gave away; ``luck``.
    """
    solution = solve_solo(adviser.compiled, instant_win=AT_TABLE)
    best = Table(record.table.variant, ("optimal",), record.table.seed)
    dealt, seating = best.deal(), Seating(best)
    while not dealt.is_over:
        dealt.apply(seating.decide(dealt.state, dealt.action_mask()))
    (verdicts,) = judge(record, adviser)
    regret = sum(verdict.cost for verdict in verdicts)
    score = _worth(record.dealt, solution)
    return {
        "score": score,
        "optimal_score": _worth(dealt, solution),
        "expected": solution.expected_score,
        "regret": regret,
        "luck": score - (solution.expected_score - regret),
        "num_decisions": len(verdicts),
        "num_optimal": sum(verdict.is_optimal for verdict in verdicts),
    }
