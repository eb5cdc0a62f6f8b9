"""The boxes of the card, and which dice fit each of them."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum

from generala_env.rules.dice import FACES, NUM_DICE, Counts


class Box(StrEnum):
    """A box of the card; its value is its name everywhere in code and files."""

    ONES = "ones"
    TWOS = "twos"
    THREES = "threes"
    FOURS = "fours"
    FIVES = "fives"
    SIXES = "sixes"
    ESCALERA = "escalera"
    FULL = "full"
    POKER = "poker"
    GENERALA = "generala"
    DOBLE_GENERALA = "doble_generala"


NUMBER_FACES: dict[Box, int] = dict(zip(Box, FACES, strict=False))
"""The face that each number box counts."""

SERVED_BONUS_BOXES = frozenset({Box.ESCALERA, Box.FULL, Box.POKER})
"""The boxes that pay the served bonus."""

Straight = tuple[int, ...]
"""Five different faces in ascending order; {3, 4, 5, 6, 1} is (1, 3, 4, 5, 6)."""


def is_five_equal(counts: Counts) -> bool:
    """Tell whether all five dice show one face."""
    return max(counts) == NUM_DICE


def is_escalera(counts: Counts, straights: Collection[Straight]) -> bool:
    """Tell whether the dice show exactly the faces of one of the straights."""
    return max(counts) == 1 and tuple(face for face in FACES if counts[face - 1]) in straights


def is_full(counts: Counts, *, takes_five: bool) -> bool:
    """Tell whether the dice are three of one face and two of another."""
    return (3 in counts and 2 in counts) or (takes_five and is_five_equal(counts))


def is_poker(counts: Counts, *, takes_five: bool) -> bool:
    """Tell whether at least four dice show one face."""
    return max(counts) == 4 or (takes_five and is_five_equal(counts))
