"""Learners whose networks see the card and price afterstates, so that dice need not be learned.

What a network of observations is lives one floor up, in ``networks.py``, ``ppo.py`` and ``dqn.py``.
Start with ``tables.py``, which says what is learned; ``algorithms.py`` has the faces of stable-baselines3.
"""
