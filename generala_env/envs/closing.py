"""What closing a box would write now."""

from __future__ import annotations

from typing import NamedTuple

from generala_env.rules.card import Card, box_points, closable_boxes, close_box, is_served
from generala_env.rules.dice import counts_of
from generala_env.rules.game import GameState, Phase
from generala_env.rules.variants import Variant


class Payment(NamedTuple):
    """What closing a box pays.

    Attributes:
        points: In the box itself.
        bonus: What the Doble bonus adds.
    """

    points: int
    bonus: int


def payment(variant: Variant, state: GameState, box: int) -> Payment:
    """Return what closing a box would pay the player to move, playoffs included.

    Args:
        variant: The rules.
        state: A position with dice on the table.
        box: The index of the box.
    """
    return _payment(variant, state, box, served=is_served_now(variant, state))


def is_served_now(variant: Variant, state: GameState) -> bool:
    """Return whether closing a box with the dice on the table counts as served."""
    decides = state.phase in (Phase.TURNS, Phase.PLAYOFF) and bool(state.turn.dice)
    return decides and is_served(variant, state.turn.throw, is_full_throw=state.turn.is_full_throw)


def pays_for_service(variant: Variant, state: GameState) -> bool:
    """Tell whether some box that may be closed now pays more because the dice were served.

    Every first throw counts as served; this is what makes it worth a word.
    """
    playoff = state.phase is Phase.PLAYOFF
    boxes = range(variant.num_boxes) if playoff else closable_boxes(variant, state.card)
    return is_served_now(variant, state) and any(
        _payment(variant, state, box, served=True) != _payment(variant, state, box, served=False)
        for box in boxes
    )


def _payment(variant: Variant, state: GameState, box: int, *, served: bool) -> Payment:
    counts = counts_of(state.turn.dice)
    # A playoff turn is played on an empty card, on which the engine finds the best box itself.
    if state.phase is Phase.PLAYOFF or box not in closable_boxes(variant, state.card):
        card = Card.empty(variant) if state.phase is Phase.PLAYOFF else state.card
        return Payment(box_points(variant, card, variant.boxes[box], counts, served=served), 0)
    closing = close_box(variant, state.card, box, counts, served=served)
    return Payment(closing.points, closing.bonus)
