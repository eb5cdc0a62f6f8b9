"""Exact answers by backward induction over a compiled variant."""

from generala_env.solver.solo import SoloSolution, solve_solo

__all__ = ["SoloSolution", "solve_solo"]
