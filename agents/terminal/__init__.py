"""The game in the terminal: playing, hints and reviews.

Rules and dealing live in ``generala_env``; records, advice and verdicts in ``agents/games``; what
the screen says in ``words.py``. Start with ``game.py``.
"""
