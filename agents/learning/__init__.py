"""Networks and the algorithms that train them, with the interfaces of stable-baselines3.

The loop around a run, its folder and its evaluations live in ``runs``.
Start with ``learners.py``, which makes one from a config; then ``ppo.py`` and ``dqn.py``.
"""
