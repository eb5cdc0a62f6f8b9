"""The rules of Generala: pure values and functions over the standard library and NumPy."""

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
