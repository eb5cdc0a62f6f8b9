"""Exact answers over the tables of a variant: best play alone and between two, and what any policy is worth.

Nothing here samples, learns or knows an environment; the rules are read from ``generala_env.rules.compiled``.
Start with ``turn`` (one turn) and ``solo`` (a card); then ``duel`` (two players), ``evaluation`` (a policy).
"""

from generala_env.solver.duel import DuelSolution, open_duel, solve_duel
from generala_env.solver.solo import ActionValues, SoloSolution, solve_solo, solve_turn_greedy

__all__ = [
    "ActionValues",
    "DuelSolution",
    "SoloSolution",
    "open_duel",
    "solve_duel",
    "solve_solo",
    "solve_turn_greedy",
]
