"""The rules of Generala: what a variant is, what may be done, what it pays; and the same as arrays.

Nothing here draws dice, learns, solves or prints; it needs no more than the standard library and NumPy.
Start with ``variants`` (the rules as data), then ``card`` and ``game`` (the engine), then ``compiled``.
"""

from generala_env.rules.boxes import Box
from generala_env.rules.card import BoxStatus, Card
from generala_env.rules.compiled import CompiledVariant, TurnBatch, compile_variant
from generala_env.rules.game import Game, GameState, IllegalActionError, Phase
from generala_env.rules.variants import DEFAULT_VARIANT, PRESETS, Variant, VariantError, get_variant

__all__ = [
    "DEFAULT_VARIANT",
    "PRESETS",
    "Box",
    "BoxStatus",
    "Card",
    "CompiledVariant",
    "Game",
    "GameState",
    "IllegalActionError",
    "Phase",
    "TurnBatch",
    "Variant",
    "VariantError",
    "compile_variant",
    "get_variant",
]
