"""Agents that learn nothing: random, rules of thumb, exact values, those that look at the others.

What is trained lives in ``learning``; names are given in ``agents.registry``.
Start with ``baselines.py``; ``seats.py`` has what sits at a table.
"""
