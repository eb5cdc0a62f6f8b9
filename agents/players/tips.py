"""An agent that plays by a person's rules of thumb."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from agents.base import StateAgent
from generala_env.rules.actions import NUM_KEEP_ACTIONS
from generala_env.rules.boxes import NUMBER_FACES, Box, is_escalera, is_five_equal, is_full, is_poker
from generala_env.rules.compiled import CompiledVariant, TurnBatch
from generala_env.rules.dice import (
    KEEP_COUNTS,
    KEEP_INDEX,
    KEEP_OF_MASK,
    NUM_DICE,
    THROWS,
    THROWS_PER_TURN,
    Dice,
    counts_of,
)


class TipsAgent(StateAgent):
    """Plays by a person's rules of thumb.

    No dear box on a weak throw; squeeze the small boxes; go for the straight with four of it;
    strike the Generala before the fours. Each decision depends on the dice, on what may be
    closed and on what may be kept, and on nothing else.
    """

    def __init__(self, compiled: CompiledVariant) -> None:
        """Bind the agent to a variant."""
        super().__init__("tips", compiled)

    def act_on(self, batch: TurnBatch, action_masks: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Follow the rules of thumb in every state; see ``StateAgent.act_on``."""
        paid = self.compiled.closing_points(
            np.asarray(batch.card, dtype=np.intp),
            slice(None),
            np.asarray(batch.served, dtype=np.intp),
            np.asarray(batch.throw, dtype=np.intp),
        )
        closable = action_masks[:, NUM_KEEP_ACTIONS:]
        keys = np.concatenate(
            [
                np.where(closable, paid, -1),
                np.asarray(batch.throw)[:, None],
                np.asarray(batch.throw_number)[:, None],
                np.where(self.compiled.variant.is_locked, batch.kept, 0)[:, None],
                np.asarray(batch.served)[:, None],
            ],
            axis=1,
        ).astype(np.int32)
        distinct, where, back = np.unique(keys, axis=0, return_index=True, return_inverse=True)
        boxes = self.compiled.variant.boxes
        chosen = np.empty(len(distinct), dtype=np.int64)
        for row, (key, first) in enumerate(zip(distinct.tolist(), where, strict=True)):
            *points, throw, throw_number, _, served = key
            pays = {box: paid for box, paid in zip(boxes, points, strict=True) if paid >= 0}
            legal = action_masks[first]
            wanted = None
            if legal[:NUM_KEEP_ACTIONS].any():
                wanted = _wanted_keep(THROWS[throw], pays, throw_number, bool(served), self.compiled)
            chosen[row] = (
                NUM_KEEP_ACTIONS + boxes.index(_box_to_close(THROWS[throw], pays))
                if wanted is None
                else _nearest_keep(throw, wanted, legal)
            )
        return chosen[back.reshape(-1)]


_STRIKE_ORDER: Final = (
    Box.ONES,
    Box.DOBLE_GENERALA,
    Box.TWOS,
    Box.GENERALA,
    Box.THREES,
    Box.ESCALERA,
    Box.FOURS,
    Box.FULL,
    Box.FIVES,
    Box.SIXES,
    Box.POKER,
)
"""What to give up when nothing fits, the least loved first."""

_HANDS: Final = (Box.DOBLE_GENERALA, Box.GENERALA, Box.POKER, Box.FULL, Box.ESCALERA)
"""The hands from the dearest down."""

_BY_FACE: Final = {face: box for box, face in NUMBER_FACES.items()}


def _box_to_close(dice: Dice, pays: Mapping[Box, int]) -> Box:
    """Return the box to close when the turn ends here."""
    for hand in _HANDS:
        if pays.get(hand, 0) > 0:
            return hand
    counts = counts_of(dice)
    numbers = [face for face, box in _BY_FACE.items() if box in pays]
    good = [face for face in numbers if counts[face - 1] >= 3]
    if good:
        return _BY_FACE[max(good)]
    small = [face for face in numbers if counts[face - 1] >= (1 if face == 1 else 2)]
    if small:
        return _BY_FACE[min(small)]
    return next(box for box in _STRIKE_ORDER if box in pays)


def _wanted_keep(
    dice: Dice, pays: Mapping[Box, int], throw_number: int, served: bool, compiled: CompiledVariant
) -> Dice | None:
    """Return the dice to keep, or ``None`` to close a box now."""
    variant = compiled.variant
    counts = counts_of(dice)
    most = max(counts)
    top = max(face for face in range(1, 7) if counts[face - 1] == most)
    if is_five_equal(counts):
        return None
    if is_poker(counts, takes_five=False) and Box.POKER in pays:
        # The fifth die cannot spoil a Póker, but throwing it gives the served bonus away.
        return None if served or Box.GENERALA not in pays else (top,) * 4
    if is_full(counts, takes_five=False) and Box.FULL in pays:
        return None
    if is_escalera(counts, variant.straights) and Box.ESCALERA in pays:
        return None
    wants_equal = {Box.GENERALA, Box.DOBLE_GENERALA, Box.POKER} & set(pays)
    if most >= 3 and (wants_equal or _BY_FACE[top] in pays or Box.FULL in pays):
        return (top,) * most
    if Box.ESCALERA in pays:
        runs = [tuple(face for face in straight if counts[face - 1]) for straight in variant.straights]
        longest = max(runs, key=len)
        if len(longest) == NUM_DICE - 1:
            return longest
    pairs = [face for face in range(1, 7) if counts[face - 1] == 2]
    if len(pairs) == 2 and Box.FULL in pays:
        return tuple(sorted(pairs * 2))
    liked = [face for face in pairs if wants_equal or Box.FULL in pays or _BY_FACE[face] in pays]
    liked = [face for face in liked if _BY_FACE[face] in pays] or liked
    if liked:
        return (max(liked),) * 2
    if most == 3:
        return ()
    open_numbers = [face for face in dice if _BY_FACE[face] in pays]
    if open_numbers and throw_number < THROWS_PER_TURN:
        best = max(open_numbers)
        return (best,) * counts[best - 1]
    return ()


@cache
def _keep_distances() -> NDArray[np.int8]:
    """Return by how many dice each multiset differs from each; (462, 462) int8."""
    distances: NDArray[np.int8] = np.abs(KEEP_COUNTS[:, None] - KEEP_COUNTS).sum(axis=2, dtype=np.int8)
    return distances


def _nearest_keep(throw: int, wanted: Dice, legal: NDArray[np.bool_]) -> int:
    """Return the legal keep action that differs least from the wanted dice, the lowest id among equals."""
    actions = np.flatnonzero(legal[:NUM_KEEP_ACTIONS])
    distances = _keep_distances()[KEEP_INDEX[wanted], KEEP_OF_MASK[throw, actions]]
    return int(actions[distances.argmin()])
