"""Exact answers by backward induction over a compiled variant."""

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
