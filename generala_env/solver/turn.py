"""One turn, by backward induction over the lattice of keeps.

The value of a turn follows from the value of closing a box with each throw. After a throw the
player closes or keeps; the value of keeping a multiset is the mean, over the face of one more
die, of the value of the multiset with that die added, so one pass over the 462 keeps, from
five dice down, prices all of them. The best keep inside a throw is found the same way, from
the empty keep up. A throw of all five dice may count as served, and then has values of its own.
"""

from __future__ import annotations

from functools import cache, lru_cache

import numpy as np
from numpy.typing import NDArray

from generala_env.compiling import kernel
from generala_env.rules.actions import NUM_KEEP_ACTIONS
from generala_env.rules.compiled import CardTables
from generala_env.rules.dice import (
    IS_FIVE_EQUAL,
    KEEP_ADD,
    KEEP_COUNTS,
    KEEP_INDEX,
    KEEP_OF_MASK,
    KEEP_REMOVE,
    KEEPS,
    NUM_DICE,
    NUM_KEEPS,
    NUM_PARTIAL_KEEPS,
    NUM_THROWS,
    THROW_PROBABILITIES,
    throw_probabilities_after,
)

_ADD = np.ascontiguousarray(KEEP_ADD)
_REMOVE = np.ascontiguousarray(KEEP_REMOVE)
_PROBABILITIES = np.ascontiguousarray(THROW_PROBABILITIES)
_FIVE_EQUAL = np.ascontiguousarray(IS_FIVE_EQUAL)
KEEPS_OF_THROW = np.ascontiguousarray(KEEP_OF_MASK[:, :NUM_KEEP_ACTIONS].astype(np.int64))
_COUNTS = np.ascontiguousarray(KEEP_COUNTS)
_FIRST_OF_SIZE = np.array(
    [[len(keep) for keep in KEEPS].index(size) for size in range(NUM_DICE + 1)] + [NUM_KEEPS]
)


@cache
def keep_union_table() -> NDArray[np.int16]:
    """Return the keep made of two keeps put together.

    Returns:
        (210, 462) int16; -1 where they have more than five dice.
    """
    table = np.full((NUM_PARTIAL_KEEPS, NUM_KEEPS), -1, dtype=np.int16)
    for first in range(NUM_PARTIAL_KEEPS):
        for second in range(NUM_KEEPS):
            union = tuple(sorted(KEEPS[first] + KEEPS[second]))
            table[first, second] = KEEP_INDEX.get(union, -1)
    table.setflags(write=False)
    return table


@kernel()
def expect_keeps(values: NDArray[np.float64], first: int) -> None:
    """Fill the value of every keep below five dice from the values of the throws.

    Args:
        values: (462,) float64; entries 210 to 461, the throws, are given, the rest written.
        first: The lowest keep to fill.
    """
    for keep in range(NUM_PARTIAL_KEEPS - 1, first - 1, -1):
        total = 0.0
        for face in range(6):
            total += values[_ADD[keep, face]]
        values[keep] = total / 6.0


@kernel()
def best_keeps(values: NDArray[np.float64], best: NDArray[np.float64]) -> None:
    """Find the best keep contained in every keep and, properly, in every throw.

    Args:
        values: (462,) float64; the value of keeping each multiset of up to four dice.
        best: (462,) float64, written.
    """
    for keep in range(NUM_KEEPS):
        top = values[keep] if keep < NUM_PARTIAL_KEEPS else -np.inf
        for face in range(6):
            smaller = _REMOVE[keep, face]
            if smaller >= 0 and best[smaller] > top:
                top = best[smaller]
        best[keep] = top


@kernel()
def _expect_throw(
    closing: NDArray[np.float64], best: NDArray[np.float64], is_served: bool, win_value: float
) -> float:
    """Return the mean over throws of all five dice of the better of closing and keeping."""
    total = 0.0
    served = 1 if is_served else 0
    for throw in range(NUM_THROWS):
        if is_served and _FIVE_EQUAL[throw] and not np.isnan(win_value):
            value = win_value
        else:
            value = max(closing[served, throw], best[NUM_PARTIAL_KEEPS + throw])
        total += _PROBABILITIES[throw] * value
    return total


@kernel()
def solve_turn(
    closing: NDArray[np.float64],
    tables: CardTables,
    win_value: float,
    union: NDArray[np.int16],
    keep_values: NDArray[np.float64],
) -> float:
    """Price every keep of a turn, and the turn itself.

    Args:
        closing: (2, 252) float64; the value of closing the best box, unserved and served.
        tables: Of the rules: which throws are served, and whether kept dice are locked.
        win_value: The value of an instant win, or NaN where there is none.
        union: (210, 462) int16, ``keep_union_table()``.
        keep_values: (2, 210) float64, written: the value of keeping each multiset after the
            first and after the second throw.

    Returns:
        The value of the turn before its first throw.
    """
    values = np.empty(NUM_KEEPS)
    best = np.empty(NUM_KEEPS)
    is_served = tables.is_served

    # The third throw: a box must be closed.
    best[:] = -np.inf
    values[NUM_PARTIAL_KEEPS:] = closing[0]
    expect_keeps(values, 0)
    values[0] = _expect_throw(closing, best, is_served[2, 1], win_value)
    keep_values[1] = values[:NUM_PARTIAL_KEEPS]

    # The second throw.
    best_keeps(values, best)
    rethrown = _expect_throw(closing, best, is_served[1, 1], win_value)
    if tables.is_locked:
        for kept in range(1, NUM_PARTIAL_KEEPS):
            keep_values[0, kept] = _expect_locked(closing, keep_values[1], kept, union, values, best)
    else:
        for throw in range(NUM_THROWS):
            keep = NUM_PARTIAL_KEEPS + throw
            values[keep] = max(closing[0, throw], best[keep])
        expect_keeps(values, 0)
        keep_values[0] = values[:NUM_PARTIAL_KEEPS]
    keep_values[0, 0] = rethrown

    # The first throw.
    best_keeps(keep_values[0], best)
    return _expect_throw(closing, best, is_served[0, 1], win_value)


@kernel()
def _expect_locked(
    closing: NDArray[np.float64],
    later: NDArray[np.float64],
    kept: int,
    union: NDArray[np.int16],
    values: NDArray[np.float64],
    best: NDArray[np.float64],
) -> float:
    """Return the value of keeping ``kept`` after the first throw when it stays kept.

    The lattice is that of the dice added to ``kept``; ``values`` and ``best`` are scratch.
    """
    size = 0
    while _FIRST_OF_SIZE[size + 1] <= kept:
        size += 1
    added = 5 - size
    for extra in range(_FIRST_OF_SIZE[added + 1]):
        whole = union[kept, extra]
        top = later[whole] if whole < NUM_PARTIAL_KEEPS else -np.inf
        for face in range(6):
            smaller = _REMOVE[extra, face]
            if smaller >= 0 and best[smaller] > top:
                top = best[smaller]
        best[extra] = top
        if whole >= NUM_PARTIAL_KEEPS:
            values[extra] = max(closing[0, whole - NUM_PARTIAL_KEEPS], top, later[0])
    for extra in range(_FIRST_OF_SIZE[added] - 1, -1, -1):
        total = 0.0
        for face in range(6):
            total += values[_ADD[extra, face]]
        values[extra] = total / 6.0
    return float(values[0])


@kernel()
def best_closings(
    tables: CardTables,
    card: int,
    future: NDArray[np.float64],
    values: NDArray[np.float64],
    boxes: NDArray[np.int64],
) -> None:
    """Find the box that is worth most on a card, for each throw: its points and what follows.

    Args:
        tables: Of the rules.
        card: The index of the card.
        future: (K,) float64; what each class of cards is worth.
        values: (2, 252) float64, written: unserved and served; ``-inf`` where no box may be closed.
        boxes: (2, 252) int64, written: the lowest box that is worth it.
    """
    opened, status = tables.card_open[card], tables.card_status[card]
    values[:] = -np.inf
    for box in range(tables.closable.shape[1]):
        if not tables.closable[card, box]:
            continue
        reached = tables.successor[opened & ~(1 << box)]
        for served in range(2):
            for throw in range(NUM_THROWS):
                after = reached[tables.next_status[status, box, served, throw]]
                value = tables.points[status, box, served, throw] + future[after]
                if value > values[served, throw]:
                    values[served, throw] = value
                    boxes[served, throw] = box


@kernel()
def class_after(tables: CardTables, card: int, box: int, served: int, throw: int) -> int:
    """Return the class of the card that closing a box of a card leads to."""
    status = tables.next_status[tables.card_status[card], box, served, throw]
    return int(tables.successor[tables.card_open[card] & ~(1 << box), status])


@kernel()
def points_of(tables: CardTables, card: int, box: int, served: int, throw: int) -> int:
    """Return what closing a box of a card pays."""
    return int(tables.points[tables.card_status[card], box, served, throw])


@lru_cache(maxsize=1)
def throws_after_keeps() -> NDArray[np.float64]:
    """(210, 252) float64: probability of each throw after each keep of up to four dice."""
    return np.stack([throw_probabilities_after(keep) for keep in range(NUM_PARTIAL_KEEPS)])


@kernel()
def _choose(
    throw: int,
    kept: int,
    is_locked: bool,
    keep_values: NDArray[np.float64],
    close_value: float,
) -> int:
    """Return the keep that the policy takes on a throw, or -1 where it closes a box."""
    best, chosen = -np.inf, -1
    for position in range(KEEPS_OF_THROW.shape[1]):
        keep = KEEPS_OF_THROW[throw, position]
        if is_locked and kept > 0 and keep > 0:
            contains = True
            for face in range(6):
                if _COUNTS[keep, face] < _COUNTS[kept, face]:
                    contains = False
            if not contains:
                continue
        if keep_values[keep] > best:
            best, chosen = keep_values[keep], keep
    # Among equals the policy takes the lowest action id, and keeps come before boxes.
    return chosen if best >= close_value else -1


@kernel()
def closing_masses(
    close_value: NDArray[np.float64],
    keep_values: NDArray[np.float64],
    tables: CardTables,
    wins: bool,
    after_keep: NDArray[np.float64],
    masses: NDArray[np.float64],
) -> float:
    """Follow the policy that takes the best through a turn.

    Args:
        close_value: (2, 252), value of closing the best box.
        keep_values: (2, 210), value of each keep after the first and the second throw.
        tables: Of the rules: which throws are served, and whether kept dice are locked.
        wins: Whether a served throw of five equal dice wins at once.
        after_keep: (210, 252), probabilities of throws.
        masses: (2, 252), written: how probable it is to close on each throw.

    Returns:
        The probability of an instant win in the turn.
    """
    won = 0.0
    masses[:] = 0.0
    held = np.zeros(NUM_PARTIAL_KEEPS)
    held[0] = 1.0
    for throw_number in range(3):
        following = np.zeros(NUM_PARTIAL_KEEPS)
        for kept in range(NUM_PARTIAL_KEEPS):
            if held[kept] == 0.0:
                continue
            served = tables.is_served[throw_number, 1 if kept == 0 else 0]
            row = 1 if served else 0
            for throw in range(NUM_THROWS):
                mass = held[kept] * after_keep[kept, throw]
                if mass == 0.0:
                    continue
                if served and wins and _FIVE_EQUAL[throw]:
                    won += mass
                    continue
                chosen = -1
                if throw_number < 2:
                    chosen = _choose(
                        throw, kept, tables.is_locked, keep_values[throw_number], close_value[row, throw]
                    )
                if chosen < 0:
                    masses[row, throw] += mass
                else:
                    following[chosen] += mass
        held = following
    return won
