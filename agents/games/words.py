"""Sentences about a game that every face of it says, in Spanish, Portuguese and English."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from generala_env.rules.names import Language

Texts = Mapping[str, tuple[str, str, str]]
"""Sentences by key, in the order of ``Language``, with ``{names}`` of values to fill in."""

SHARED_TEXTS: Final[Texts] = {
    "no_more_throws": ("no quedan tiros", "não há mais lançamentos", "no throws are left"),
    "locked_dice": (
        "los dados fijos se guardan, o se tiran los cinco",
        "os dados fixos ficam, ou lançam-se os cinco",
        "locked dice stay, or all five are thrown",
    ),
    "choice": ("opción", "opção", "choice"),
    "win": ("gana", "ganha", "wins"),
    "points_to_come": ("puntos por venir", "pontos por vir", "points to come"),
    "did": ("hizo", "fez", "did"),
    "best": ("mejor", "melhor", "best"),
    "cost": ("costo", "custo", "cost"),
    "first_throw_won": (
        "Generala servida en el primer tiro",
        "General de primeira no primeiro lançamento",
        "a served Generala on the very first throw",
    ),
}


def in_language(texts: Texts, language: Language | str) -> dict[str, str]:
    """Return sentences in one language.

    Raises:
        ValueError: The language is not known.
    """
    index = list(Language).index(Language(language))
    return {key: versions[index] for key, versions in texts.items()}
