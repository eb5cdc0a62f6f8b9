"""One player's card: what is open, what the rules remember, and how a box is closed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import NamedTuple

from generala_env.rules.boxes import (
    NUMBER_FACES,
    SERVED_BONUS_BOXES,
    Box,
    is_escalera,
    is_five_equal,
    is_full,
    is_poker,
)
from generala_env.rules.dice import THROWS_PER_TURN, Counts
from generala_env.rules.variants import DobleKind, Order, ServedGeneralaWins, ServedOn, Variant


class BoxStatus(IntEnum):
    """What became of a box whose fate the rules remember."""

    OPEN = 0
    SCORED = 1
    STRUCK = 2


@dataclass(frozen=True, slots=True)
class Card:
    """What the rules need to know of a card; the points already made are kept elsewhere.

    Attributes:
        open_mask: Bit ``i`` is set while box ``i`` of the variant is open.
        generala: The status of the Generala box.
        doble: The status of the Doble box.
        is_bonus_taken: Whether the Doble bonus was taken.
    """

    open_mask: int
    generala: BoxStatus = BoxStatus.OPEN
    doble: BoxStatus = BoxStatus.OPEN
    is_bonus_taken: bool = False

    @classmethod
    def empty(cls, variant: Variant) -> Card:
        """Return the card on which every box is open."""
        return cls((1 << variant.num_boxes) - 1)

    @property
    def num_open(self) -> int:
        """The number of open boxes."""
        return self.open_mask.bit_count()

    @property
    def is_complete(self) -> bool:
        """Whether every box is closed."""
        return self.open_mask == 0

    @property
    def num_generalas(self) -> int:
        """How many of the Generala and Doble boxes were closed with points."""
        return (self.generala is BoxStatus.SCORED) + (self.doble is BoxStatus.SCORED)

    def is_open(self, box: int) -> bool:
        """Tell whether the box with that index is open."""
        return bool(self.open_mask >> box & 1)

    def open_boxes(self) -> tuple[int, ...]:
        """Return the indices of the open boxes in card order."""
        return tuple(box for box in range(self.open_mask.bit_length()) if self.is_open(box))

    def fates(self) -> dict[Box, BoxStatus]:
        """Return how the closed boxes ended of which the rules remember it: scored or struck."""
        known = {Box.GENERALA: self.generala, Box.DOBLE_GENERALA: self.doble}
        return {box: fate for box, fate in known.items() if fate is not BoxStatus.OPEN}

    def remembered(self) -> tuple[str, ...]:
        """Return in words what tells this card from others with the same open boxes."""
        fates = tuple(f"{box} {fate.name.lower()}" for box, fate in self.fates().items())
        return (*fates, "bonus taken") if self.is_bonus_taken else fates


class Closing(NamedTuple):
    """What closing a box does.

    Attributes:
        points: What the box itself pays.
        bonus: What the Doble bonus adds.
        card: The card afterwards.
    """

    points: int
    bonus: int
    card: Card


def is_served(variant: Variant, throw: int, *, is_full_throw: bool) -> bool:
    """Tell whether closing a box on this throw counts as served.

    Args:
        variant: The rules.
        throw: Which throw of the turn, 1 to 3.
        is_full_throw: Whether all five dice were thrown.

    Raises:
        ValueError: There is no such throw.
    """
    if not 1 <= throw <= THROWS_PER_TURN:
        raise ValueError(f"throw {throw} is not from 1 to {THROWS_PER_TURN}")
    return throw == 1 or (is_full_throw and variant.served_on is ServedOn.ANY_FULL_THROW)


def is_instant_win(variant: Variant, card: Card, counts: Counts, *, served: bool) -> bool:
    """Tell whether this throw wins the game on the spot for the owner of the card."""
    if not served or not is_five_equal(counts):
        return False
    if variant.served_generala_wins is ServedGeneralaWins.UNLESS_STRUCK:
        return card.generala is not BoxStatus.STRUCK
    if variant.served_generala_wins is ServedGeneralaWins.IF_OPEN:
        return card.generala is BoxStatus.OPEN
    return variant.served_generala_wins is ServedGeneralaWins.ALWAYS


def closable_boxes(variant: Variant, card: Card) -> tuple[int, ...]:
    """Return the indices of the boxes that may be closed: all open ones, or just the next."""
    boxes = card.open_boxes()
    return boxes[:1] if variant.order is Order.FORCED else boxes


def box_points(variant: Variant, card: Card, box: Box, counts: Counts, *, served: bool) -> int:
    """Return what the dice pay in the box, without the Doble bonus; 0 where they do not fit."""
    if box in NUMBER_FACES:
        face = NUMBER_FACES[box]
        return face * counts[face - 1]
    if box is Box.DOBLE_GENERALA:
        fits = is_five_equal(counts) and card.generala is BoxStatus.SCORED
        points = variant.doble.served_points if served else variant.doble.points
    elif box is Box.GENERALA:
        fits, points = is_five_equal(counts), variant.generala_points
    elif box is Box.ESCALERA:
        fits, points = is_escalera(counts, variant.straights), variant.escalera_points
    elif box is Box.FULL:
        fits, points = is_full(counts, takes_five=variant.full_takes_five), variant.full_points
    else:
        fits, points = is_poker(counts, takes_five=variant.poker_takes_five), variant.poker_points
    if not fits:
        return 0
    return points + (variant.served_bonus if served and box in SERVED_BONUS_BOXES else 0)


def close_box(
    variant: Variant, card: Card, box: int, counts: Counts, *, served: bool, strike: bool = False
) -> Closing:
    """Close an open box with the dice, or strike it on purpose.

    Args:
        variant: The rules.
        card: The card before.
        box: The index of the box in ``variant.boxes``.
        counts: The dice, as dice per face.
        served: Whether the closing counts as served.
        strike: Take 0 points in the box even if the dice fit.

    Raises:
        ValueError: The box is not one that may be closed now.
    """
    if box not in closable_boxes(variant, card):
        raise ValueError(f"box {box} cannot be closed now; closable: {closable_boxes(variant, card)}")
    kind = variant.boxes[box]
    points = 0 if strike else box_points(variant, card, kind, counts, served=served)
    takes_bonus = (
        variant.doble.kind is DobleKind.BONUS
        and not card.is_bonus_taken
        and card.generala is BoxStatus.SCORED
        and is_five_equal(counts)
    )
    after = replace(card, open_mask=card.open_mask & ~(1 << box))
    status = BoxStatus.SCORED if points else BoxStatus.STRUCK
    if kind is Box.GENERALA:
        after = replace(after, generala=status)
    elif kind is Box.DOBLE_GENERALA:
        after = replace(after, doble=status)
    if takes_bonus:
        after = replace(after, is_bonus_taken=True)
    return Closing(points, variant.doble.points if takes_bonus else 0, after)
