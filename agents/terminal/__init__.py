"""The game in the terminal: playing, hints, reviews and records.

Rules and dealing live in ``generala_env``; what the screen says in ``words.py``.
Start with ``game.py``.
"""
