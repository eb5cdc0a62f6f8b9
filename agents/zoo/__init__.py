"""The best trained agent of every preset and algorithm, with a model card each.

Agents are ``NAME.safetensors``, cards ``NAME.json``; they are asked for as ``zoo/NAME``.
Start with ``entries.py``; cards are made in ``agents.runs.zoo_cards``, by ``scripts/zoo.py``.
"""
