"""The tables of a variant and a layout that the kernel in ``stepping`` gathers from."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from generala_env.envs.observation import ObservationLayout, keep_rows, row_tables
from generala_env.rules.actions import NUM_KEEP_ACTIONS
from generala_env.rules.compiled import CompiledVariant
from generala_env.rules.dice import (
    IS_FIVE_EQUAL,
    KEEP_COUNTS,
    KEEP_INDEX,
    KEEP_OF_MASK,
    KEEP_SIZES,
    NUM_DICE,
    NUM_FACES,
    NUM_KEEPS,
    NUM_ORDERED_THROWS,
    NUM_PARTIAL_KEEPS,
    THROW_COUNTS,
    THROW_DICE,
    next_throw_table,
)

KEEP_ROW: Final = 32  # bytes: all keeps in one vector


class KernelTables(NamedTuple):
    """What the kernel reads: the compiled variant and the rows of observations and masks.

    Attributes:
        rolled: (5 * 7776,) int16, by how many dice are kept and by the roll, the multiset of the dice
            that fall. With ``union`` this says what ``next_throw_table`` does from a twelfth of its
            bytes, which stay in the caches of the processor.
        union: (210, 462) uint8, the throw made of the dice kept and those that fell.
        num_kept: (210,) int64, how many dice a keep holds, times 7776.
        keep_of_mask: (252, 32) int16, the keep that a mask selects from a throw.
        is_served: (3, 2) bool, by throw and by whether all dice were thrown.
        five_equal: (252,) bool.
        wins: (C,) bool, whether five equal dice, served, end the game at once.
        card_open: (C,) uint16.
        card_status: (C,) uint8.
        card_index: (2**B, S) int32.
        points: (S, B, 2, 252) int32.
        next_status: (S, B, 2, 252) uint8.
        bonus: (S, S) int32, the Doble bonus paid on going from a status to another.
        keep_rows: (contexts * 252, 32) int8, the keeps offered and a 0; context 0 offers none,
            context ``1 + k`` those that contain the locked dice ``k`` (1: all that the throw offers).
        close_rows: (C, B) int8, the boxes offered.
        turn_rows: (3 * 2 * 252, width) float32, blocks that depend on the turn.
        locked_rows: (210, width) float32, the block of locked dice.
        card_rows: (C, width) float32, blocks that depend on the card.
        pays_rows: (S * 2 * 252, B or 0) float32, what each box would pay.
        open_rows: (C, B or 0) float32, 1 where a box may be closed.
        dice_rows: (252, width) float32, blocks that depend on the dice alone.
        throw_dice: (252, 5) int8, the dice of each throw.
        card_open_boxes: (C, B) bool, the open boxes of each card.
    """

    rolled: NDArray[np.int16]
    union: NDArray[np.uint8]
    num_kept: NDArray[np.int64]
    keep_of_mask: NDArray[np.int16]
    is_served: NDArray[np.bool_]
    five_equal: NDArray[np.bool_]
    wins: NDArray[np.bool_]
    card_open: NDArray[np.uint16]
    card_status: NDArray[np.uint8]
    card_index: NDArray[np.int32]
    points: NDArray[np.int32]
    next_status: NDArray[np.uint8]
    bonus: NDArray[np.int32]
    keep_rows: NDArray[np.int8]
    close_rows: NDArray[np.int8]
    turn_rows: NDArray[np.float32]
    locked_rows: NDArray[np.float32]
    card_rows: NDArray[np.float32]
    pays_rows: NDArray[np.float32]
    open_rows: NDArray[np.float32]
    dice_rows: NDArray[np.float32]
    throw_dice: NDArray[np.int8]
    card_open_boxes: NDArray[np.bool_]


@lru_cache(maxsize=1)
def _throw_tables() -> tuple[NDArray[np.int16], NDArray[np.uint8]]:
    """Return ``rolled`` and ``union``, taken from ``next_throw_table``.

    A roll's digits are read from the lowest on, as many as dice are thrown; so what falls beside
    ``n`` kept dice is known from what falls beside ``n`` ones, and equal dice make equal throws.
    """
    after = next_throw_table()
    digits = (NUM_DICE + 1) ** np.arange(NUM_FACES)
    kinds = {code: index for index, code in enumerate((KEEP_COUNTS @ digits).tolist())}
    rolled = np.zeros((NUM_DICE, NUM_ORDERED_THROWS), dtype=np.int16)
    union = np.zeros((NUM_PARTIAL_KEEPS, NUM_KEEPS), dtype=np.uint8)
    for size in range(NUM_DICE):
        counts = THROW_COUNTS[after[KEEP_INDEX[(1,) * size]]].copy()
        counts[:, 0] -= size
        rolled[size] = [kinds[code] for code in (counts @ digits).tolist()]
        for keep in np.flatnonzero(size == KEEP_SIZES).tolist():
            union[keep, rolled[size]] = after[keep]
    return rolled.ravel(), union


def make_tables(
    compiled: CompiledVariant,
    layout: ObservationLayout,
    *,
    canonical_keeps: bool = True,
    wins_at_once: bool = True,
) -> KernelTables:
    """Return the tables that the kernel steps and encodes from.

    Args:
        compiled: The variant.
        layout: The blocks of the observations.
        canonical_keeps: Offer one id per kept multiset.
        wins_at_once: Whether a served Generala that wins ends the game.
    """
    rolled, union = _throw_tables()
    cards, rows, keeps = compiled.tables, row_tables(layout), keep_rows(compiled, canonical_keeps)
    boxes = np.arange(compiled.num_boxes)
    return KernelTables(
        rolled=rolled,
        union=union,
        num_kept=KEEP_SIZES[:NUM_PARTIAL_KEEPS].astype(np.int64) * NUM_ORDERED_THROWS,
        keep_of_mask=KEEP_OF_MASK,
        is_served=cards.is_served,
        five_equal=IS_FIVE_EQUAL,
        wins=cards.instant_win & wins_at_once,
        card_open=cards.card_open,
        card_status=cards.card_status,
        card_index=cards.card_index,
        points=cards.points,
        next_status=cards.next_status,
        bonus=compiled.bonus,
        keep_rows=np.pad(keeps.reshape(-1, NUM_KEEP_ACTIONS), ((0, 0), (0, KEEP_ROW - NUM_KEEP_ACTIONS))),
        close_rows=cards.closable.astype(np.int8),
        turn_rows=rows.turn,
        locked_rows=rows.locked,
        card_rows=rows.card,
        pays_rows=rows.pays,
        open_rows=rows.closable,
        dice_rows=rows.dice,
        throw_dice=THROW_DICE,
        card_open_boxes=np.ascontiguousarray(cards.card_open[:, None] >> boxes & 1, dtype=bool),
    )
