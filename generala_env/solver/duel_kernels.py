"""The arithmetic of the two-player game: one turn for every difference in points at once.

A pair of cards is solved in blocks of ``BLOCK`` consecutive differences. Within a block each
throw and each keep is a short contiguous row of values, one per difference, so that every
step of the turn (see ``turn.py``) is a vector operation: the mean over one added die and
the maximum over one removed die, 1,260 of each per throw of the turn.

Closing box ``b`` for ``p`` points turns the difference ``d`` of the mover into ``d + p`` and
passes the turn, so its value is ``1 - V[other, card after](-(d + p))``: a window into the row
of the successor pair. Throws that do the same to a group of boxes share one row (a number
box, for instance, only sees how many dice show its face).
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from generala_env.compiling import kernel
from generala_env.rules.compiled import NO_STATUS, CardTables, CompiledVariant
from generala_env.rules.dice import (
    IS_FIVE_EQUAL,
    KEEP_ADD,
    KEEP_INDEX,
    KEEP_REMOVE,
    KEEPS,
    NUM_DICE,
    NUM_FACES,
    NUM_KEEPS,
    NUM_PARTIAL_KEEPS,
    NUM_THROWS,
    THROW_WEIGHTS,
    THROWS,
    select,
    throw_probabilities_after,
)
from generala_env.solver.turn import solve_turn

BLOCK: Final = 64
"""How many differences are solved at once; rows of this length stay in the fast caches."""

NUM_GROUPS: Final = 3
"""Boxes are looked at in three groups; throws alike within a group share a row."""

_GROUP_SIZE: Final = 3
_MOST_SUBSETS: Final = 32

_ADD = np.ascontiguousarray(KEEP_ADD[:NUM_PARTIAL_KEEPS]).astype(np.uint16)
_FIVE_EQUAL = np.ascontiguousarray(IS_FIVE_EQUAL)
_WEIGHTS = np.ascontiguousarray(THROW_WEIGHTS).astype(np.float64)


def _removals() -> tuple[NDArray[np.uint8], NDArray[np.uint16]]:
    """Return how many different faces each keep has, and the keeps with one die fewer."""
    count = (KEEP_REMOVE >= 0).sum(axis=1).astype(np.uint8)
    smaller = np.zeros((NUM_KEEPS, NUM_DICE), dtype=np.uint16)
    for keep, row in enumerate(KEEP_REMOVE):
        found = row[row >= 0]
        smaller[keep, : len(found)] = found
        # Repeats let a row be read two at a time without a test.
        smaller[keep, len(found) :] = found[-1] if len(found) else 0
    return count, smaller


_NUM_SMALLER, _SMALLER = _removals()


class Subsets(NamedTuple):
    """For locked dice: the keeps inside every throw, larger ones first.

    Attributes:
        num_keeps: (252,) uint8, different keeps of up to four dice inside the throw.
        keep: (252, 32) uint16, their indices.
        num_larger: (252, 32) uint8, how many of them are this one with one die added.
        larger: (252, 32, 5) uint8, their positions in the row.
        weight: (252, 32) float64, probability of the throw after keeping it.
    """

    num_keeps: NDArray[np.uint8]
    keep: NDArray[np.uint16]
    num_larger: NDArray[np.uint8]
    larger: NDArray[np.uint8]
    weight: NDArray[np.float64]


@cache
def subsets_table() -> Subsets:
    """Return the keeps inside every throw."""
    count = np.zeros(NUM_THROWS, dtype=np.uint8)
    keep = np.zeros((NUM_THROWS, _MOST_SUBSETS), dtype=np.uint16)
    num_larger = np.zeros((NUM_THROWS, _MOST_SUBSETS), dtype=np.uint8)
    larger = np.zeros((NUM_THROWS, _MOST_SUBSETS, NUM_DICE), dtype=np.uint8)
    weight = np.zeros((NUM_THROWS, _MOST_SUBSETS))
    for throw, dice in enumerate(THROWS):
        kept = {KEEP_INDEX[select(dice, mask)] for mask in range(_MOST_SUBSETS - 1)}
        ordered = sorted(kept - {NUM_PARTIAL_KEEPS + throw}, key=lambda index: (-len(KEEPS[index]), index))
        position = {index: place for place, index in enumerate(ordered)}
        count[throw] = len(ordered)
        for place, index in enumerate(ordered):
            above = [position[int(one)] for one in KEEP_ADD[index] if int(one) in position]
            keep[throw, place] = index
            num_larger[throw, place] = len(above)
            larger[throw, place, : len(above)] = above
            weight[throw, place] = throw_probabilities_after(index)[throw]
    return Subsets(count, keep, num_larger, larger, weight)


class Closings(NamedTuple):
    """What closing boxes does, by status, grouped by throws that do the same.

    ``S`` statuses, ``B`` boxes, ``R`` rows at most in a group.

    Attributes:
        row_of: (S, 3, 2, 252) uint16, the row of a group that a throw uses, by served.
        num_rows: (S, 3) int64.
        points: (S, 3, R, B) int32, points of closing the box, for the throws of that row.
        slot: (S, 3, R, B) uint8, which of the box's ``after`` statuses it leads to.
        num_after: (S, B) int64, different statuses that closing the box can lead to.
        after: (S, B, A) int64, those statuses.
        most_points: The most points any closing pays.
    """

    row_of: NDArray[np.uint16]
    num_rows: NDArray[np.int64]
    points: NDArray[np.int32]
    slot: NDArray[np.uint8]
    num_after: NDArray[np.int64]
    after: NDArray[np.int64]
    most_points: int


@lru_cache(maxsize=16)
def group_closings(compiled: CompiledVariant) -> Closings:
    """Find, for every status, the throws that no box of a group can tell apart."""
    num_statuses, num_boxes = compiled.points.shape[:2]
    flat_points = compiled.points.reshape(num_statuses, num_boxes, -1)
    flat_status = compiled.next_status.reshape(num_statuses, num_boxes, -1)
    afters = [
        [[int(s) for s in np.unique(flat_status[status, box]) if s != NO_STATUS] for box in range(num_boxes)]
        for status in range(num_statuses)
    ]
    most_after = max(len(found) for row in afters for found in row)
    num_after = np.array([[len(found) for found in row] for row in afters], dtype=np.int64)
    after = np.zeros((num_statuses, num_boxes, most_after), dtype=np.int64)
    row_of = np.zeros((num_statuses, NUM_GROUPS, 2, NUM_THROWS), dtype=np.uint16)
    num_rows = np.ones((num_statuses, NUM_GROUPS), dtype=np.int64)
    points = np.zeros((num_statuses, NUM_GROUPS, 2 * NUM_THROWS, num_boxes), dtype=np.int32)
    slot = np.zeros(points.shape, dtype=np.uint8)
    for status in range(num_statuses):
        for box in range(num_boxes):
            after[status, box, : num_after[status, box]] = afters[status][box]
        for group in range(NUM_GROUPS):
            boxes = [box for box in range(num_boxes) if min(box // _GROUP_SIZE, NUM_GROUPS - 1) == group]
            if not boxes:
                continue
            keys = np.concatenate([flat_points[status, boxes], flat_status[status, boxes]]).T
            unique, first, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
            num_rows[status, group] = len(unique)
            row_of[status, group] = inverse.reshape(2, NUM_THROWS)
            for box in boxes:
                points[status, group, : len(first), box] = flat_points[status, box, first]
                reached = flat_status[status, box, first]
                for place, found in enumerate(afters[status][box]):
                    slot[status, group, : len(first)][reached == found, box] = place
    most_rows = int(num_rows.max())
    return Closings(
        row_of,
        num_rows,
        np.ascontiguousarray(points[:, :, :most_rows]),
        np.ascontiguousarray(slot[:, :, :most_rows]),
        num_after,
        after,
        int(compiled.points.max()),
    )


class Scratch(NamedTuple):
    """Working memory of one thread; ``F`` is the floating type of the values.

    Attributes:
        values: (462, BLOCK) F, the value of every keep and throw.
        best: (210, BLOCK) F, the best keep inside every keep.
        closing: (252, BLOCK) F, the best box for every throw, unserved.
        rows: (3, R, BLOCK) F, the best box of every group.
        windows: (B, A, W) F, the successors' values, by difference after closing.
        inner: (32, BLOCK) F, the best keep between a subset and a throw.
        sums: (3, BLOCK) F.
    """

    values: NDArray[Any]
    best: NDArray[Any]
    closing: NDArray[Any]
    rows: NDArray[Any]
    windows: NDArray[Any]
    inner: NDArray[Any]
    sums: NDArray[Any]


@kernel()
def _mean_of_added(values: NDArray[Any], sixth: Any, rest: Any) -> None:
    """Fill the rows of keeps below five dice: the mean over the face of one more die.

    The sixth is the sum of two floats: rounding 1/6 once would bias every value.
    """
    for back in range(NUM_PARTIAL_KEEPS):
        keep = np.uint64(NUM_PARTIAL_KEEPS - 1 - back)
        a, b, c = _ADD[keep, 0], _ADD[keep, 1], _ADD[keep, 2]
        d, e, f = _ADD[keep, 3], _ADD[keep, 4], _ADD[keep, 5]
        for x in range(BLOCK):
            total = ((values[a, x] + values[b, x]) + (values[c, x] + values[d, x])) + (
                values[e, x] + values[f, x]
            )
            values[keep, x] = total * sixth + total * rest


@kernel()
def _larger(a: Any, b: Any) -> Any:
    return a if a > b else b


@kernel()
def _best_within(values: NDArray[Any], best: NDArray[Any]) -> None:
    """Fill the best keep inside every keep of up to four dice."""
    for x in range(BLOCK):
        best[0, x] = values[0, x]
    for keep in range(np.uint64(1), np.uint64(NUM_PARTIAL_KEEPS)):
        count = _NUM_SMALLER[keep]
        a, b = _SMALLER[keep, 0], _SMALLER[keep, 1]
        if count <= 2:
            for x in range(BLOCK):
                best[keep, x] = _larger(values[keep, x], _larger(best[a, x], best[b, x]))
        else:
            c, d = _SMALLER[keep, 2], _SMALLER[keep, 3]
            for x in range(BLOCK):
                best[keep, x] = _larger(
                    _larger(values[keep, x], best[a, x]),
                    _larger(best[b, x], _larger(best[c, x], best[d, x])),
                )


@kernel()
def _best_in_throws(best: NDArray[Any], values: NDArray[Any]) -> None:
    """Write the best keep inside every throw over the throws' rows of ``values``."""
    for keep in range(np.uint64(NUM_PARTIAL_KEEPS), np.uint64(NUM_KEEPS)):
        count = _NUM_SMALLER[keep]
        a, b, c = _SMALLER[keep, 0], _SMALLER[keep, 1], _SMALLER[keep, 2]
        if count <= 2:
            for x in range(BLOCK):
                values[keep, x] = _larger(best[a, x], best[b, x])
        elif count == 3:
            for x in range(BLOCK):
                values[keep, x] = _larger(_larger(best[a, x], best[b, x]), best[c, x])
        else:
            d, e = _SMALLER[keep, 3], _SMALLER[keep, 4]
            for x in range(BLOCK):
                values[keep, x] = _larger(
                    _larger(_larger(best[a, x], best[b, x]), best[c, x]), _larger(best[d, x], best[e, x])
                )


@kernel()
def _mean_of_full_throw(
    values: NDArray[Any],
    rows: NDArray[Any],
    row_of: NDArray[np.uint16],
    wins: bool,
    weights: NDArray[Any],
    sums: NDArray[Any],
    keeps_matter: bool,
    result: NDArray[Any],
) -> None:
    """Average a throw of all five dice, closed as ``row_of`` says, into ``result``.

    Args:
        values: (462, BLOCK); the throws' rows hold the best keep inside them.
        rows: (3, R, BLOCK), the best box of every group.
        row_of: (3, 252).
        wins: Whether five equal dice win at once.
        weights: (252,) probabilities.
        sums: (3, BLOCK) scratch: partial sums of sixteen throws keep the rounding small.
        keeps_matter: Whether the dice may still be kept.
        result: (BLOCK,) written.
    """
    one = weights.dtype.type(1.0)
    for x in range(BLOCK):
        result[x] = 0.0
    for start in range(0, NUM_THROWS, 16):
        for x in range(BLOCK):
            sums[0, x] = 0.0
        for throw in range(np.uint64(start), np.uint64(min(start + 16, NUM_THROWS))):
            weight = weights[throw]
            keep = np.uint64(NUM_PARTIAL_KEEPS) + throw
            if wins and _FIVE_EQUAL[throw]:
                for x in range(BLOCK):
                    sums[0, x] += weight * one
                continue
            a, b, c = row_of[0, throw], row_of[1, throw], row_of[2, throw]
            if keeps_matter:
                for x in range(BLOCK):
                    closed = _larger(_larger(rows[0, a, x], rows[1, b, x]), rows[2, c, x])
                    sums[0, x] += weight * _larger(closed, values[keep, x])
            else:
                for x in range(BLOCK):
                    closed = _larger(_larger(rows[0, a, x], rows[1, b, x]), rows[2, c, x])
                    sums[0, x] += weight * closed
        for x in range(BLOCK):
            result[x] += sums[0, x]


@kernel()
def _mean_locked(
    closing: NDArray[Any],
    values: NDArray[Any],
    best: NDArray[Any],
    inner: NDArray[Any],
    subsets: Subsets,
) -> None:
    """Fill ``best`` with the value of keeping each multiset first, when it stays kept.

    ``values`` holds the value of keeping after the second throw. Row 0 of ``best`` is left
    as the mean over unserved throws; the throws' rows of ``values`` are overwritten with the
    best keep inside them.
    """
    for keep in range(np.uint64(NUM_PARTIAL_KEEPS)):
        for x in range(BLOCK):
            best[keep, x] = 0.0
    for throw in range(np.uint64(NUM_THROWS)):
        count = subsets.num_keeps[throw]
        for place in range(np.uint64(count)):
            keep = subsets.keep[throw, place]
            for x in range(BLOCK):
                inner[place, x] = values[keep, x]
            for other in range(np.uint64(subsets.num_larger[throw, place])):
                bigger = subsets.larger[throw, place, other]
                for x in range(BLOCK):
                    inner[place, x] = _larger(inner[place, x], inner[bigger, x])
            weight = closing.dtype.type(subsets.weight[throw, place])
            for x in range(BLOCK):
                value = _larger(_larger(closing[throw, x], values[0, x]), inner[place, x])
                best[keep, x] += weight * value
        last = np.uint64(count - 1)
        row = np.uint64(NUM_PARTIAL_KEEPS) + throw
        for x in range(BLOCK):
            values[row, x] = inner[last, x]


@kernel()
def _turn(
    scratch: Scratch,
    row_of: NDArray[np.uint16],
    tables: CardTables,
    wins: bool,
    subsets: Subsets,
    weights: NDArray[Any],
    sixth: Any,
    rest: Any,
) -> None:
    """Price a turn for one block of differences; the result is ``scratch.sums[2]``.

    Args:
        scratch: ``rows`` is given.
        row_of: (3, 2, 252), of the card's status.
        tables: Of the rules: which throws are served, and whether kept dice are locked.
        wins: Whether a served throw of five equal dice wins at once.
        subsets: The keeps inside every throw.
        weights: (252,) probabilities of the throws.
        sixth: 1/6, rounded.
        rest: What rounding took from it.
    """
    values, best, closing = scratch.values, scratch.best, scratch.closing
    rows, sums, is_served = scratch.rows, scratch.sums, tables.is_served
    unserved, served = row_of[:, 0], row_of[:, 1]

    # The third throw: a box must be closed.
    for throw in range(np.uint64(NUM_THROWS)):
        a, b, c = unserved[0, throw], unserved[1, throw], unserved[2, throw]
        keep = np.uint64(NUM_PARTIAL_KEEPS) + throw
        for x in range(BLOCK):
            closed = _larger(_larger(rows[0, a, x], rows[1, b, x]), rows[2, c, x])
            closing[throw, x] = closed
            values[keep, x] = closed
    _mean_of_added(values, sixth, rest)
    if is_served[2, 1]:
        _mean_of_full_throw(values, rows, served, wins, weights, sums, False, values[0])

    # The second throw. Throwing all five again may be served, and is never locked.
    if tables.is_locked:
        _mean_locked(closing, values, best, scratch.inner, subsets)
        if is_served[1, 1]:
            _mean_of_full_throw(values, rows, served, wins, weights, sums, True, best[0])
        for partial in range(NUM_PARTIAL_KEEPS):
            for x in range(BLOCK):
                values[partial, x] = best[partial, x]
    else:
        _best_within(values, best)
        _best_in_throws(best, values)
        if is_served[1, 1]:
            _mean_of_full_throw(values, rows, served, wins, weights, sums, True, sums[1])
        for throw in range(np.uint64(NUM_THROWS)):
            keep = np.uint64(NUM_PARTIAL_KEEPS) + throw
            for x in range(BLOCK):
                values[keep, x] = _larger(values[keep, x], closing[throw, x])
        _mean_of_added(values, sixth, rest)
        if is_served[1, 1]:
            for x in range(BLOCK):
                values[0, x] = sums[1, x]

    # The first throw.
    _best_within(values, best)
    _best_in_throws(best, values)
    first = served if is_served[0, 1] else unserved
    _mean_of_full_throw(values, rows, first, wins and is_served[0, 1], weights, sums, True, sums[2])


class PointRanges(NamedTuple):
    """How many points there can be, by class of cards.

    Attributes:
        future: (K,) int64, the most points still to be made without an instant win.
        least: (K,) int64, the fewest points made on the way from the empty card.
        most: (K,) int64, the most.
    """

    future: NDArray[np.int64]
    least: NDArray[np.int64]
    most: NDArray[np.int64]


class Pairs(NamedTuple):
    """Pairs of cards to be solved.

    Attributes:
        movers: (N,) int64, classes of the players to move.
        others: (N,) int64, classes of the players to wait.
        starts: (N,) int64, where the values of each pair go.
    """

    movers: NDArray[np.int64]
    others: NDArray[np.int64]
    starts: NDArray[np.int64]


class LayerIndex(NamedTuple):
    """Where the values of the pairs of one layer lie.

    Attributes:
        mover_row: (K,) int32, the row of a mover's class, or -1.
        other_column: (K,) int32, the column of the other's class, or -1.
        offsets: (movers * others + 1,) int64, the first value of each pair.
        num_others: The number of columns.
    """

    mover_row: NDArray[np.int32]
    other_column: NDArray[np.int32]
    offsets: NDArray[np.int64]
    num_others: int


@kernel()
def lowest_difference(ranges: PointRanges, mover: int, other: int) -> int:
    """Return the first difference kept for a pair of classes.

    From there down the mover cannot catch up with points, or the difference cannot arise.
    """
    low, high = -ranges.future[mover] - 1, ranges.future[other] + 1
    reached = ranges.least[mover] - ranges.most[other]
    return int(min(max(low, reached), high))


@kernel()
def highest_difference(ranges: PointRanges, mover: int, other: int) -> int:
    """Return the last difference kept for a pair of classes."""
    low, high = -ranges.future[mover] - 1, ranges.future[other] + 1
    reached = ranges.most[mover] - ranges.least[other]
    return int(max(min(high, reached), low))


@kernel()
def pair_offset(index: LayerIndex, mover: int, other: int) -> int:
    """Return where the values of a pair start."""
    pair = np.int64(index.mover_row[mover]) * index.num_others + index.other_column[other]
    return int(index.offsets[pair])


@kernel()
def _best_of_groups(base: int, card: int, tables: CardTables, closings: Closings, scratch: Scratch) -> None:
    """Fill ``scratch.rows`` from its windows: the best box of every group, from a difference on."""
    status, closable = tables.card_status[card], tables.closable[card]
    for group in range(NUM_GROUPS):
        first = group * _GROUP_SIZE
        last = min(first + _GROUP_SIZE, len(closable)) if group < NUM_GROUPS - 1 else len(closable)
        for row in range(closings.num_rows[status, group]):
            target = scratch.rows[group, row]
            # A probability is never below 0, so an empty group never wins.
            for x in range(BLOCK):
                target[x] = 0.0
            for box in range(first, last):
                if closable[box]:
                    shift = base + closings.points[status, group, row, box]
                    window = scratch.windows[box, closings.slot[status, group, row, box]]
                    source = window[shift : shift + BLOCK]
                    for x in range(BLOCK):
                        target[x] = _larger(target[x], source[x])


@kernel()
def _solve_pair(
    mover: int,
    other: int,
    tables: CardTables,
    ranges: PointRanges,
    weights: NDArray[Any],
    closings: Closings,
    subsets: Subsets,
    index: LayerIndex,
    previous: NDArray[Any],
    scratch: Scratch,
    result: NDArray[Any],
) -> None:
    """Write the values of a pair for its differences, lowest first."""
    lowest = lowest_difference(ranges, mover, other)
    width = highest_difference(ranges, mover, other) - lowest + 1
    blocks = (width + BLOCK - 1) // BLOCK
    reach = blocks * BLOCK + closings.most_points
    one = scratch.sums.dtype.type(1.0)
    card = tables.card_of_class[mover]
    opened, status = tables.card_open[card], tables.card_status[card]
    closable = tables.closable[card]
    for box in range(len(closable)):
        if not closable[box]:
            continue
        for slot in range(closings.num_after[status, box]):
            after = tables.successor[opened & ~(1 << box), closings.after[status, box, slot]]
            low = lowest_difference(ranges, other, after)
            high = highest_difference(ranges, other, after)
            start = pair_offset(index, other, after)
            window = scratch.windows[box, slot]
            # Seen from the other side the difference is -(lowest + x), clamped.
            for x in range(reach):
                place = min(max(-(lowest + x), low), high) - low
                window[x] = one - previous[start + place]
    sixth = scratch.sums.dtype.type(1.0 / 6.0)
    rest = scratch.sums.dtype.type(1.0 / 6.0 - np.float64(sixth))
    for block in range(blocks):
        base = block * BLOCK
        _best_of_groups(base, card, tables, closings, scratch)
        _turn(
            scratch,
            closings.row_of[status],
            tables,
            tables.instant_win[card],
            subsets,
            weights,
            sixth,
            rest,
        )
        for x in range(min(BLOCK, width - base)):
            result[base + x] = min(max(scratch.sums[2, x], 0.0), one)


@kernel()
def solve_rows(
    share: int,
    num_shares: int,
    pairs: Pairs,
    tables: CardTables,
    ranges: PointRanges,
    weights: NDArray[Any],
    closings: Closings,
    subsets: Subsets,
    index: LayerIndex,
    previous: NDArray[Any],
    most_window: int,
    values: NDArray[Any],
) -> None:
    """Solve a share of pairs of cards, each independent of the others.

    Args:
        share: Which share, from 0.
        num_shares: How many there are.
        pairs: Which.
        tables: Of the rules.
        ranges: How many points there can be.
        weights: (252,) probabilities of the throws, of the type of the values.
        closings: What closing does.
        subsets: The keeps inside every throw.
        index: Where the successors' values lie.
        previous: Values of the layer with one box fewer.
        most_window: Length of the widest window of successors.
        values: Written.
    """
    kind = previous.dtype
    num_rows, num_slots = closings.points.shape[2], closings.after.shape[2]
    num_boxes = tables.closable.shape[1]
    # Interleaved shares: neighbours have ranges of like width, so shares cost alike.
    scratch = Scratch(
        np.empty((NUM_KEEPS, BLOCK), kind),
        np.empty((NUM_PARTIAL_KEEPS, BLOCK), kind),
        np.empty((NUM_THROWS, BLOCK), kind),
        np.zeros((NUM_GROUPS, num_rows, BLOCK), kind),
        np.empty((num_boxes, num_slots, most_window), kind),
        np.empty((_MOST_SUBSETS, BLOCK), kind),
        np.empty((3, BLOCK), kind),
    )
    for item in range(share, len(pairs.movers), num_shares):
        _solve_pair(
            pairs.movers[item],
            pairs.others[item],
            tables,
            ranges,
            weights,
            closings,
            subsets,
            index,
            previous,
            scratch,
            values[pairs.starts[item] :],
        )


@lru_cache(maxsize=16)
def point_ranges(compiled: CompiledVariant) -> PointRanges:
    """Return the most points to come, and the fewest and most made, by class of cards."""
    num_cards = compiled.num_cards
    future = np.zeros(num_cards, dtype=np.int64)
    least = np.full(num_cards, np.iinfo(np.int64).max)
    most = np.full(num_cards, -1, dtype=np.int64)
    least[0] = most[0] = 0
    wins = np.zeros((2, NUM_THROWS), dtype=bool)
    wins[1] = IS_FIVE_EQUAL

    @cache
    def steps(status: int, box: int) -> NDArray[np.int64]:
        """Return the different (points, next status, whether the throw may win) of a closing."""
        found = np.stack([compiled.points[status, box], compiled.next_status[status, box], wins])
        return np.unique(found.reshape(3, -1).astype(np.int64), axis=1)

    links: list[list[tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.bool_]]]] = []
    for card in range(num_cards):
        found = []
        for box in np.flatnonzero(compiled.closable[card]).tolist():
            points, status, may_win = steps(int(compiled.card_status[card]), box)
            opened = int(compiled.card_open[card]) & ~(1 << box)
            ends = (may_win > 0) & compiled.instant_win[card]
            found.append((points, compiled.card_index[opened, status], ends))
        links.append(found)
    for card in range(num_cards):
        for points, after, _ in links[card]:
            np.minimum.at(least, after, least[card] + points)
            np.maximum.at(most, after, most[card] + points)
    for card in reversed(range(num_cards)):
        for points, after, ends in links[card]:
            future[card] = max(future[card], int((points + future[after])[~ends].max()))
    classes = compiled.num_classes
    class_future = np.zeros(classes, dtype=np.int64)
    class_least = np.full(classes, np.iinfo(np.int64).max)
    class_most = np.full(classes, -1, dtype=np.int64)
    np.maximum.at(class_future, compiled.class_of_card, future)
    np.minimum.at(class_least, compiled.class_of_card, least)
    np.maximum.at(class_most, compiled.class_of_card, most)
    return PointRanges(class_future, class_least, class_most)


def throw_weights(dtype: type[np.floating[Any]]) -> NDArray[Any]:
    """Return the probabilities of the throws in the type of the values; (252,)."""
    return np.asarray((_WEIGHTS / _WEIGHTS.sum()).astype(dtype))


def operations_per_difference(compiled: CompiledVariant) -> int:
    """Return the additions, maxima and multiplications a turn costs for one difference.

    Counted for free dice from the tables: two passes of means and two of maxima over the lattice, and the
    closings; the windows and the bookkeeping are not counted. For locked dice the second throw is
    counted over pairs of a keep and a throw instead.
    """
    means = NUM_PARTIAL_KEEPS * (NUM_FACES - 1 + 3)
    partial = int(_NUM_SMALLER[:NUM_PARTIAL_KEEPS].sum())
    in_throws = int(_NUM_SMALLER[NUM_PARTIAL_KEEPS:].sum()) - NUM_THROWS
    maxima = partial + in_throws
    closings = NUM_THROWS * (NUM_GROUPS - 1)
    full_throw = NUM_THROWS * (NUM_GROUPS + 2)
    extra = int(compiled.is_served[1, 1]) + int(compiled.is_served[2, 1])
    total = means + maxima + closings + full_throw * (1 + extra)
    if compiled.variant.is_locked:
        subsets = subsets_table()
        return total + int(subsets.num_larger.sum()) + int(subsets.num_keeps.sum()) * 4
    return total + means + maxima + NUM_THROWS


@kernel()
def price_turns(
    share: int,
    num_shares: int,
    movers: NDArray[np.int64],
    others: NDArray[np.int64],
    differences: NDArray[np.int64],
    tables: CardTables,
    ranges: PointRanges,
    closings: Closings,
    union: NDArray[np.int16],
    index: LayerIndex,
    previous: NDArray[Any],
    keep_values: NDArray[np.float64],
) -> None:
    """Price every keep of a share of single turns, in float64.

    Args:
        share: Which share, from 0.
        num_shares: How many there are.
        movers: (N,) classes of the players to move, all of one layer.
        others: (N,) classes of the players to wait.
        differences: (N,) points of the mover less points of the other.
        tables: Of the rules.
        ranges: How many points there can be.
        closings: What closing does.
        union: ``keep_union_table()``.
        index: Where the successors' values lie.
        previous: Values of the layer with one box fewer.
        keep_values: (N, 2, 210), written.
    """
    num_boxes = tables.closable.shape[1]
    for item in range(share, len(movers), num_shares):
        mover, other = movers[item], others[item]
        card = tables.card_of_class[mover]
        status = tables.card_status[card]
        rows = np.zeros((NUM_GROUPS, closings.points.shape[2]))
        for group in range(NUM_GROUPS):
            first = group * _GROUP_SIZE
            last = first + _GROUP_SIZE if group < NUM_GROUPS - 1 else num_boxes
            for row in range(closings.num_rows[status, group]):
                top = 0.0
                for box in range(first, min(last, num_boxes)):
                    if tables.closable[card, box]:
                        slot = closings.slot[status, group, row, box]
                        opened = tables.card_open[card] & ~(1 << box)
                        after = tables.successor[opened, closings.after[status, box, slot]]
                        low = lowest_difference(ranges, other, after)
                        high = highest_difference(ranges, other, after)
                        reached = -(differences[item] + closings.points[status, group, row, box])
                        place = min(max(reached, low), high) - low
                        top = max(top, 1.0 - np.float64(previous[pair_offset(index, other, after) + place]))
                rows[group, row] = top
        closing = np.empty((2, NUM_THROWS))
        for served in range(2):
            for throw in range(NUM_THROWS):
                top = 0.0
                for group in range(NUM_GROUPS):
                    top = max(top, rows[group, closings.row_of[status, group, served, throw]])
                closing[served, throw] = top
        win_value = 1.0 if tables.instant_win[card] else np.nan
        solve_turn(closing, tables, win_value, union, keep_values[item])
