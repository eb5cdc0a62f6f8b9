"""The game for whoever learns or plays: Gymnasium and PettingZoo, the dice, observations, pictures.

No rule is written here, and what a position is worth is not known; see ``rules`` and ``solver`` for those.
Start with ``solo`` (one player alone); ``vector`` and ``stepping`` are the same game compiled, many times.
"""
