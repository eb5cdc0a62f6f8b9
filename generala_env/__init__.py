"""Generala, South America's Yahtzee: its rules, its environments and its exact solvers, for every variant.

Who plays, learns and is compared lives in the package ``agents``; nothing here knows of it.
Importing registers ``generala_env/Generala-v0`` and ``generala_env/GeneralaDuel-v0``; the table for two or
more is the PettingZoo module ``generala_env.table_v0``. Start with ``rules``, then ``envs`` or ``solver``.
"""

from importlib import import_module
from typing import Any

from gymnasium.envs.registration import register

from generala_env.rules import PRESETS, Variant, VariantError, get_variant

__version__ = "0.1.0"

__all__ = ["PRESETS", "Variant", "VariantError", "get_variant"]

register(
    id="generala_env/Generala-v0",
    entry_point="generala_env.envs.solo:GeneralaEnv",
    vector_entry_point="generala_env.envs.vector:GeneralaVectorEnv",
)
register(
    id="generala_env/GeneralaDuel-v0",
    entry_point="generala_env.envs.duel:GeneralaDuelEnv",
    vector_entry_point="generala_env.envs.duel_vector:GeneralaDuelVectorEnv",
)


def __getattr__(name: str) -> Any:
    # PettingZoo takes a second to import, and only the table needs it.
    if name == "table_v0":
        return import_module("generala_env.table_v0")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
