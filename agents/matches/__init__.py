"""Agents against each other on equal dice, and studies of the solved duel.

Who plays is made in ``agents.registry``; games are dealt by ``generala_env.envs``.
Start with ``match.py``.
"""
