"""Exact answers by backward induction over a compiled variant."""

from generala_env.solver.duel import DuelSolution, open_duel, solve_duel
from generala_env.solver.solo import SoloSolution, solve_solo

__all__ = ["DuelSolution", "SoloSolution", "open_duel", "solve_duel", "solve_solo"]
