"""The ``variant`` of a config: a preset's name, or a preset with fields replaced."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Final

from pydantic_core import PydanticCustomError

from agents.config.problems import KeyPath
from agents.errors import shown
from generala_env.rules.variants import FIELD_NAMES, PRESETS, Variant, VariantError, get_variant

_JUDGED_TOGETHER: Final = (
    "boxes",
    "doble",
    "straights",
    "served_generala_wins",
    "min_players",
    "max_players",
)
"""Fields of a variant that others can contradict."""


def _variant_problems(value: object) -> list[tuple[KeyPath, str]]:
    """Return everything wrong with a variant, field by field."""
    problems: list[tuple[KeyPath, str]] = []
    if isinstance(value, Mapping):
        known = ("base", *FIELD_NAMES)
        for name, given in value.items():
            if name not in known:
                near = difflib.get_close_matches(str(name), known, n=1)
                hint = f"did you mean variant.{near[0]}?" if near else f"known: {', '.join(known)}"
                problems.append(((str(name),), f"unknown key (value {shown(given)}); {hint}"))
    if problems:
        return problems
    try:
        get_variant(value)  # type: ignore[arg-type]
    except VariantError as error:
        wrong = {error.field: str(error).partition(": ")[2]}
        base = value.get("base") if isinstance(value, Mapping) else None
        if isinstance(value, Mapping) and isinstance(base, str) and base in PRESETS:
            # Fields that are judged by themselves can all be told at once.
            for name, given in value.items():
                if name not in ("base", *_JUDGED_TOGETHER):
                    try:
                        PRESETS[base].override(**{name: given})
                    except VariantError as other:
                        wrong[other.field] = str(other).partition(": ")[2]
        elif isinstance(value, Mapping) and error.field == "variant":
            wrong = {"base": wrong["variant"]}
        problems += [
            ((name,) if isinstance(value, Mapping) else (), message) for name, message in wrong.items()
        ]
    return problems


def check_variant(value: object) -> object:
    """Return the rules of a config as they were given, a ``Variant`` as its values.

    Raises:
        PydanticCustomError: They are not rules; its context lists every problem.
    """
    if isinstance(value, Variant):
        value = value.to_dict()
    problems = _variant_problems(value)
    if problems:
        raise PydanticCustomError("variant", "not a variant", {"problems": problems})
    return value


VARIANT_SCHEMA: Final = {
    "description": "The rules: a preset's name, or a preset as base with fields replaced.",
    "anyOf": [
        {"enum": list(PRESETS)},
        {
            "type": "object",
            "properties": {"base": {"enum": list(PRESETS)}, **{name: {} for name in FIELD_NAMES}},
            "additionalProperties": False,
        },
    ],
}
