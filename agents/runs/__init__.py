"""Training runs: their folder, loop, checkpoints, evaluations, and how runs are compared.

Algorithms live in ``learning``, files of agents in ``saving``.
Start with ``training.py``.
"""
