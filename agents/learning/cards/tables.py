"""A variant as the arrays that card learners and their compiled loops read.

What a decision leads to is an *afterstate*: a card, and either the dice kept after the first or
the second throw, or nothing on the table because a box was closed. What an afterstate is worth
does not depend on the dice that were not kept, nor, where kept dice are locked, on what was locked
before: the dice kept are the lock. So a learner needs one number for each of them, an *output*:
210 for the keeps after the first throw, 210 for those after the second, one for the card as
closed. Cards that the rules cannot tell apart share a row. Nothing here knows how likely dice are.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from generala_env.rules.compiled import CompiledVariant, InstantWin, instant_win_points
from generala_env.rules.dice import (
    IS_CANONICAL_MASK,
    IS_FIVE_EQUAL,
    KEEP_ADD,
    KEEP_COUNTS,
    KEEP_OF_MASK,
    NUM_KEEP_MASKS,
    NUM_PARTIAL_KEEPS,
    NUM_THROWS,
)

CLOSED: Final = 2 * NUM_PARTIAL_KEEPS
"""The output of a card on which a box was just closed."""
NUM_OUTPUTS: Final = CLOSED + 1
"""421: the keeps after the first throw, those after the second, and the closed card."""


class AfterstateTables(NamedTuple):
    """The rules as compiled loops read them; ``K`` classes of cards, ``B`` boxes, ``S`` statuses.

    Classes are numbered by falling number of open boxes, so those of complete cards come last.

    Attributes:
        num_rows: ``R``, how many classes have a box open; only these have outputs.
        is_locked: Whether the second keep must contain the first or be empty.
        pair_of: (1 or 210, 252) int16; by the dice locked and the throw, where its keeps are
            listed, -1 where the throw cannot follow. One row where dice are free.
        keep_start: (P + 1,) int32; where each pair's keeps start in ``keep_list``.
        keep_list: (N,) uint8; the partial keeps that each pair allows.
        keep_add: (462, 6) int16; the keep with one die more.
        is_five_equal: (252,) bool.
        is_served: (3, 2) uint8; by throw and by whether all dice were thrown.
        num_closable: (K,) uint8; how many boxes may be closed.
        closable: (K, B) uint8; which, the first ``num_closable`` of each row.
        open_mask: (K,) int32; bit ``b`` set while box ``b`` is open.
        status: (K,) uint8.
        class_of: (2**B, S) int32; the class by open boxes and status, -1 where there is none.
        points: (S, 2, 252, B) float32; what closing a box pays, unserved and served.
        next_status: (S, 2, 252, B) uint8.
        is_won: (K,) bool; whether a served throw of five equal dice ends the game at once.
        win_points: What that pays; 0 where the game plays on.
    """

    num_rows: int
    is_locked: int
    pair_of: NDArray[np.int16]
    keep_start: NDArray[np.int32]
    keep_list: NDArray[np.uint8]
    keep_add: NDArray[np.int16]
    is_five_equal: NDArray[np.bool_]
    is_served: NDArray[np.uint8]
    num_closable: NDArray[np.uint8]
    closable: NDArray[np.uint8]
    open_mask: NDArray[np.int32]
    status: NDArray[np.uint8]
    class_of: NDArray[np.int32]
    points: NDArray[np.float32]
    next_status: NDArray[np.uint8]
    is_won: NDArray[np.bool_]
    win_points: float


@lru_cache(maxsize=2)
def _keep_lists(is_locked: bool) -> tuple[NDArray[np.int16], NDArray[np.int32], NDArray[np.uint8]]:
    """Return ``pair_of``, ``keep_start`` and ``keep_list``."""
    inside = [
        np.unique(KEEP_OF_MASK[throw, : NUM_KEEP_MASKS - 1][IS_CANONICAL_MASK[throw, : NUM_KEEP_MASKS - 1]])
        for throw in range(NUM_THROWS)
    ]
    pair_of = np.full((NUM_PARTIAL_KEEPS if is_locked else 1, NUM_THROWS), -1, dtype=np.int16)
    starts: list[int] = [0]
    lists: list[NDArray[np.uint8]] = []
    for kept in range(len(pair_of)):
        for throw in range(NUM_THROWS):
            keeps = inside[throw]
            if kept not in keeps:
                continue
            # Throwing all five again unlocks them, so the empty keep is always there.
            holds = (KEEP_COUNTS[keeps] >= KEEP_COUNTS[kept]).all(axis=1) | (keeps == 0)
            pair_of[kept, throw] = len(lists)
            lists.append(keeps[holds].astype(np.uint8))
            starts.append(starts[-1] + len(lists[-1]))
    arrays = pair_of, np.array(starts, dtype=np.int32), np.concatenate(lists)
    for array in arrays:
        array.setflags(write=False)
    return arrays


def afterstate_tables(compiled: CompiledVariant, instant_win: InstantWin = "play_on") -> AfterstateTables:
    """Return the tables of a variant's one-player game.

    Args:
        compiled: The variant.
        instant_win: How a served Generala that wins is treated, as everywhere.

    Raises:
        ValueError: ``instant_win`` is not known.
    """
    return _tables(compiled, instant_win)


@lru_cache(maxsize=16)
def _tables(compiled: CompiledVariant, instant_win: InstantWin) -> AfterstateTables:
    win_points = instant_win_points(compiled, instant_win)
    cards = compiled.card_of_class
    pair_of, keep_start, keep_list = _keep_lists(compiled.variant.is_locked)
    closable = np.zeros((len(cards), compiled.num_boxes), dtype=np.uint8)
    for row, card in enumerate(cards):
        boxes = np.flatnonzero(compiled.closable[card])
        closable[row, : len(boxes)] = boxes
    is_won = compiled.instant_win[cards] & (win_points is not None)
    arrays: dict[str, NDArray[Any]] = {
        "pair_of": pair_of,
        "keep_start": keep_start,
        "keep_list": keep_list,
        "keep_add": KEEP_ADD,
        "is_five_equal": IS_FIVE_EQUAL,
        "is_served": compiled.is_served.astype(np.uint8),
        "num_closable": compiled.closable[cards].sum(axis=1).astype(np.uint8),
        "closable": closable,
        "open_mask": compiled.card_open[cards].astype(np.int32),
        "status": compiled.card_status[cards],
        "class_of": compiled.tables.successor,
        # Boxes last: the loops go over the boxes of one throw.
        "points": np.ascontiguousarray(compiled.points.transpose(0, 2, 3, 1), dtype=np.float32),
        "next_status": np.ascontiguousarray(compiled.next_status.transpose(0, 2, 3, 1)),
        "is_won": is_won,
    }
    # Compiled loops are compiled once per type of argument, and being read-only is part of it.
    arrays = {name: np.array(array, order="C") for name, array in arrays.items()}
    return AfterstateTables(
        num_rows=int((compiled.num_open[cards] > 0).sum()),
        is_locked=int(compiled.variant.is_locked),
        win_points=0.0 if win_points is None else win_points,
        **arrays,
    )


def card_features(compiled: CompiledVariant) -> NDArray[np.float32]:
    """Return what a network sees of each class of cards with an open box.

    Open boxes first, one entry each, then the status, one-hot.

    Returns:
        (R, B + S) float32.
    """
    cards = compiled.card_of_class[compiled.num_open[compiled.card_of_class] > 0]
    is_open = compiled.card_open[cards][:, None] >> np.arange(compiled.num_boxes) & 1
    status = compiled.card_status[cards][:, None] == np.arange(len(compiled.statuses))
    return np.concatenate([is_open, status], axis=1).astype(np.float32)
