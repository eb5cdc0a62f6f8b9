"""Exact answers by backward induction over a compiled variant."""

from generala_env.solver.solo import ActionValues, SoloSolution, solve_solo, solve_turn_greedy

__all__ = ["ActionValues", "SoloSolution", "solve_solo", "solve_turn_greedy"]
